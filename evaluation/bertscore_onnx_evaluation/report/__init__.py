"""Results as pages to read, print and hand on, and as fragments for notebooks: a module for each
result.
"""
