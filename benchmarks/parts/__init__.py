"""What several benchmarks of masters and slaves have in common."""
