"""Messages: as sent, as received, and the byte layout of their records."""
