import numpy as np

WORDS = "the a cat dog sat mat on sits ran red blue house tree and or not is was it"
"""Its vocabulary, beside some punctuation and ends of words."""

CANDIDATES = ["the cat sat on the mat.", "a dog ran", "red house"]


REFERENCES = ["a cat sits on a mat.", "the dog runs", "the tree is blue!"]


SEVERAL = [
    ["a cat sits on a mat.", "the cat sat"],
    ["the dog runs"],
    ["the tree is blue!", "a red house", "it is"],
]


def largest_difference(one, other):
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))
