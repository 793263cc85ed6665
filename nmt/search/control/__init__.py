"""Control over search: constraints on what may come next, and what a line may ask for beside its translation."""
