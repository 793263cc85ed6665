"""Position encodings: three hooks, embed, rotate and bias."""
