"""Loads a transformer cut at a layer."""
