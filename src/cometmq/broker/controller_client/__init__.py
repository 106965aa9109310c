"""A broker under a controller: its permanent id, whether it is the master, and how it proves that it still is."""
