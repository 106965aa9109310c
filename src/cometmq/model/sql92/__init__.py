"""SQL92 conditions: from text to a predicate on properties."""
