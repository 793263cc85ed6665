"""Ids on disk to padded tensors, in a seeded and resumable order."""
