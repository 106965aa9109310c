"""Bodies of messages as text that people read, with fields hidden that they must not."""
