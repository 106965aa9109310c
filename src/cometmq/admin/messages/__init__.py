"""Messages: look up, scan, send, resend; dead letters, traces and what became of a message."""
