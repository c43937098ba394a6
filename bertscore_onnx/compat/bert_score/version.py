"""The release of bert-score whose names and numbers these are."""

__version__ = "0.3.13"
