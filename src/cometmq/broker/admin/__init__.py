"""What operators ask of a broker: topics, groups, offsets, figures."""
