"""Results as pages to read, print and hand on.

They are fragments for notebooks too; there is a module for each result.
"""
