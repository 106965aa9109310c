"""Who may do what: login, sessions, roles, forgery, rates."""
