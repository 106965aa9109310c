"""What a broker tells about itself: metrics under RocketMQ 5's names, its health, and a dump of what it is doing."""
