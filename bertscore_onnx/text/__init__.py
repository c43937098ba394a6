"""Texts to token ids: the same ids as the model's own tokenizer."""
