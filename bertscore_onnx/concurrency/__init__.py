"""Threads, forks and CPUs."""
