"""Facts about models as data: chosen layers, maximum lengths, default models of languages, and
baselines.
"""
