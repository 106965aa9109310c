"""TLS contexts that follow their files, what may be negotiated, certificates for tests, and names in certificates."""
