"""Scores for many callers at once.

Their texts are scored together, in one process, without a web framework.
"""
