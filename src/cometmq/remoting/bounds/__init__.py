"""What one peer, and all of them together, may use up at a port, and how often such a bound was reached."""
