"""When messages of the timer topic are due, kept in files by time; read ``waiting`` first."""
