"""Model folders on disk: names, saving, loading, averaging."""
