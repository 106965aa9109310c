"""Topics, groups and offsets, as the JSON files of the ``config`` directory."""
