"""The commit log: appends by one writer, files, records."""
