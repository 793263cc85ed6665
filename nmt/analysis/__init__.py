"""Looking into models and runs: attention weights, what heads do, and the report of a run."""
