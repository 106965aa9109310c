"""The files of a store as they lie in its directory, for reading only: names, layouts, bytes by position."""
