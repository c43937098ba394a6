"""Strings of all kinds for a scorer, and requests of a grammar for a server."""
