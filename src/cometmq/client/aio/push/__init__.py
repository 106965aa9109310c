"""The consumer that calls a listener: rebalancing, pulling, retries, order."""
