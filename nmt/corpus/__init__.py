"""Raw text to clean sentence pairs."""
