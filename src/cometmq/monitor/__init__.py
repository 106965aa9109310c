"""What all servers tell about themselves: metrics, health, slow requests, and a dump of what they are doing."""
