"""Compiled twins of hot loops. The Python modules that they are twins of do the same, slower."""
