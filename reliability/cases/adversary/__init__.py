"""Attacks on a server, each from a process of its own."""
