"""The commands `serve` and `batch`."""
