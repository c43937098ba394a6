"""Makes a bundle of a graph that somebody has published, without PyTorch."""
