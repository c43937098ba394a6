"""Facts about the models as data: tuned layers, lengths, language defaults and baselines."""
