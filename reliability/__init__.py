"""Proves that the library holds out under load, faults and damage: `python -m reliability` (`make reliability`)."""
