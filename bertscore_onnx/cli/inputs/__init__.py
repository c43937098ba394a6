"""What the command line reads: texts one a line, or columns of TSV, CSV, JSON lines and Parquet, packed or not."""
