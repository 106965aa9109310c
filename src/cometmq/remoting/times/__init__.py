"""How long requests took."""
