"""Converts and checks tokenizers of transformers."""
