"""Texts in the columns of tables, and scores put beside them.

The tables may have any format.
"""
