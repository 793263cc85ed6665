"""One file a format of parallel text."""
