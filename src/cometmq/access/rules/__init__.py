"""What each request needs: a resource and an action on it, or just an account."""
