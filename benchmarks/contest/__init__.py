"""Contestants that do the same work in turn, each in a process of its own."""
