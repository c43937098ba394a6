"""Token embeddings and weights to precision, recall and F."""
