"""What a processor does between the matrix products of training, in loops of our own on torch's own threads."""
