"""What producers and consumers of a client share: name servers, routes, connections, heartbeats."""
