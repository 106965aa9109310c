"""Which rows of a Spark sink are stored already, so that none is stored twice."""
