"""What handlers are made of: rows, searches, time lines, explanations."""
