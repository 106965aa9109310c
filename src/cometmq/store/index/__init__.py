"""Index files: from keys and times to records."""
