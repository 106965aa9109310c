"""Servers as processes: clusters, brokers, name servers, controllers, their settings and figures."""
