"""The broker: a room for each feature, with its request processors; ``server`` puts them together."""
