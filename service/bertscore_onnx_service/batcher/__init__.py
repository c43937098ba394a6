"""Scores for many callers at once: their texts are scored together, in one process, without a web
framework.
"""
