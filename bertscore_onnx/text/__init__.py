"""Texts to token ids, the ids that the model's own tokenizer gives."""
