"""Code that the benchmarks and the reliability cases share: processes, models, texts and
results.
"""
