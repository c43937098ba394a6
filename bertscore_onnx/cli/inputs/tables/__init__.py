"""Texts in the columns of tables: TSV, CSV, JSON lines and Parquet."""
