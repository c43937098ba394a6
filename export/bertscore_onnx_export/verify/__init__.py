"""Compares an export with PyTorch."""
