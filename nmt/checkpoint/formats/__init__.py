"""Foreign model formats, one file each, imported when asked for (see nmt/checkpoint/export.py)."""
