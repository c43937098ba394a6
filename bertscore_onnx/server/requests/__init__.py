"""A request from its bytes to its answer."""
