"""Consumer groups: their definitions, members, positions and lag."""
