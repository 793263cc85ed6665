"""Clean text to subword ids and back."""
