"""Texts in the columns of tables of any format, and scores put beside them."""
