"""Which metric agrees with annotators: `meta_evaluate`, and the statistics beneath it."""
