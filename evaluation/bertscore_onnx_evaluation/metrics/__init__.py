"""Which metric agrees with annotators.

`meta_evaluate` tells it, by the statistics beneath it.
"""
