"""What the dashboard knows by itself: it asks the servers in rounds, whoever looks, and keeps the figures."""
