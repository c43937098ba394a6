"""Benchmarks against bert-score: `python -m benchmarks` on the CPU, `python -m benchmarks.gpu` on
CUDA.
"""
