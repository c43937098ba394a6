"""Tables of papers, made again by the public functions of the library: README.md beside this file
lists them.
"""
