"""Checks that the library withstands load, faults and damage: `python -m reliability` (`make
reliability`).
"""
