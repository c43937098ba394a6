"""Converts a tokenizer of transformers."""
