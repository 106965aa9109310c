"""A master's tables at its slave: what to ask for, what to do with an answer, and what the slave gives back."""
