"""From a model to translations: beam search, length penalties, text in and text out."""
