"""Compares what was exported with PyTorch."""
