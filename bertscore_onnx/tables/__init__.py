"""Texts in the columns of tables, whatever holds the table, and scores put beside them."""
