"""What the benchmarks and the reliability cases share."""
