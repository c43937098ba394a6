"""The commands `compare`, `meta` and `tune-layers`."""
