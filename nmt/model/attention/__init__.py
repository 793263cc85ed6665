"""Attention: core.py projects, weighs, mixes and merges; each other file overrides one of these."""
