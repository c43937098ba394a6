"""Threads, forks and processors."""
