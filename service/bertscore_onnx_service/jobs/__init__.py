"""The same scores in many processes, on any number of machines.

Ray and Spark need the extras of these names.
"""
