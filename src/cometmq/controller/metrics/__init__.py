"""What a controller tells about itself, under RocketMQ's names."""
