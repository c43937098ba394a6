"""Loads a transformer, cut at its layer."""
