"""One file a stage of a recipe; stage.py holds order and freshness."""
