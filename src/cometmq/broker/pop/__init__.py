"""POP consumption: pops, acks, revival of what was not acked; ``pops`` puts them together."""
