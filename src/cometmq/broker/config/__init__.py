"""The broker's settings: read from ``broker.conf``, shown, and changed while it runs."""
