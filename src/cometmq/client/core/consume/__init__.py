"""Decisions about consuming: rebalance, flow limits, outcomes, positions."""
