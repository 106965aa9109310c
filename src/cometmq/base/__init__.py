"""What knows nothing of messaging: errors, clock, disk, logs, settings."""
