"""Files that hold texts or tables: lines, TSV, CSV, JSON lines and Parquet, packed with gzip or not."""
