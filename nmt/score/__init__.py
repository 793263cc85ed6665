"""Metrics with signatures."""
