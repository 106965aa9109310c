"""POP consumption: see ``pops``."""
