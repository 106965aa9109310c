"""Who changed what: one line of JSON per request that changes something."""
