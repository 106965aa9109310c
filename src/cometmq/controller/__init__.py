"""The controller: which broker of a group is its master, and which replicas have all that was acknowledged."""
