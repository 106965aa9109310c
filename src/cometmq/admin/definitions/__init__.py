"""Export and import: topics, groups and accounts of a cluster as one file."""
