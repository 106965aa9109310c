"""Servers that benchmarks run against."""
