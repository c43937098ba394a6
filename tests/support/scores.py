"""Texts of the tiny model, and what several tests compare scores by."""

import numpy as np

CANDIDATES = ["the cat sat on the mat.", "a dog ran", "red house"]


REFERENCES = ["a cat sits on a mat.", "the dog runs", "the tree is blue!"]


SEVERAL = [["a cat sits on a mat.", "the cat sat"], ["the dog runs"], ["the tree is blue!", "a red house", "it is"]]


def largest_difference(one, other):
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))
