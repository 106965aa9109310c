"""What each route answers, by subject. ``HANDLERS`` of a module are its functions by the names of the routes."""
