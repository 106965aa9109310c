"""A small HTTP/1.1 server for pages that are read by machines: one request per connection, everything bounded."""
