"""Topics: their definitions, routes, positions and rates."""
