"""Mutates JSON: its text, and the tree that it stands for."""

import copy
import json
import random
from typing import Any

NUMBERS = [0, -1, 1, 2, 255, 2**31 - 1, 2**31, 2**32, 10**12, 2**63 - 1, 2**63, 2**64, 10**30, -(2**63)]
FRACTIONS = [0.0, -0.0, 1.0, 0.5, -1.0, 1e-320, 1e38, 1e308, -1e308]
STRINGS = ["", " ", "\0", "a|b\n\x1b[2J", "../x", "[", "(?<x", "\\", "▁", "##", "[UNK]", "\U0001f600", "e\u0301" * 99]
LONG = ["x" * 100_000, "[" * 5000]
CONTAINERS: list[Any] = [[], {}, [[]], [None], [0] * 5000, [[0, 0]] * 3000, {"type": "Sequence"}, {"": {}}]
KINDS: list[list[Any]] = [NUMBERS, FRACTIONS, STRINGS, LONG, CONTAINERS]
DEPTHS = [50, 500, 20_000]


def mutated_text(content: bytes, draw: random.Random) -> bytes:
    """Change bytes: flip, cut out, insert, repeat, or end too early."""
    at = draw.randrange(len(content) + 1)
    size = draw.choice([1, 1, 4, 50, 1000])
    kind = draw.randrange(6)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + content[at + size :]
    if kind == 2:
        return content[:at] + draw.randbytes(size) + content[at:]
    if kind == 3:
        return content[:at] + content[at : at + size] * draw.choice([2, 2, 20]) + content[at + size :]
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 3, 20])):
        if changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def mutated_json(content: bytes, draw: random.Random) -> bytes:
    """Change the tree that a JSON text stands for, at one to three places."""
    tree = json.loads(content)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        tree = mutated_tree(tree, draw)
    _shorten_sequences(tree)
    text = json.dumps(tree)
    if draw.random() < 0.05:
        depth = draw.choice(DEPTHS)
        place = text.find("null")
        text = text[:place] + "[" * depth + "]" * depth + text[place + 4 :]
    return text.encode()


def _shorten_sequences(node: Any) -> None:
    """Leave a few steps of each sequence: each may double a text, which SECURITY.md says no bound stops."""
    if isinstance(node, dict | list):
        for key, below in node.items() if isinstance(node, dict) else enumerate(node):
            if key in ("normalizers", "pretokenizers") and isinstance(below, list):
                del below[4:]
            _shorten_sequences(below)


def mutated_tree(tree: Any, draw: random.Random) -> Any:
    """Return a tree with one node changed; each level is left as likely as any other."""
    tree = copy.deepcopy(tree)
    parent: Any = None
    key: Any = None
    node = tree
    while isinstance(node, dict | list) and node and (parent is None or draw.random() < 0.75):
        parent = node
        key = draw.choice(list(node)) if isinstance(node, dict) else draw.randrange(len(node))
        node = node[key]
    if parent is None:
        return draw.choice(CONTAINERS)
    kind = draw.randrange(10)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[draw.choice(["unknown", "", "type", *parent])] = node
    elif kind == 1 and isinstance(parent, list):
        parent[key : key + 1] = [node] * draw.choice([2, 2, 1000])
    elif kind == 2:
        parent[key] = _any_value(draw)
    elif kind == 3:
        parent[key] = copy.deepcopy(draw.choice(list(parent.values()) if isinstance(parent, dict) else parent))
    else:
        parent[key] = _of_its_type(node, draw)
    return tree


def _any_value(draw: random.Random) -> Any:
    return draw.choice([None, True, *draw.choice(KINDS)])


def _of_its_type(node: Any, draw: random.Random) -> Any:
    """Return another value of the same type: those are what a check of types lets through."""
    if isinstance(node, bool):
        return not node
    if isinstance(node, int):
        return draw.choice([*NUMBERS, node + 1, node - 1, node * 1000])
    if isinstance(node, float):
        return draw.choice([*FRACTIONS, -node])
    if isinstance(node, str):
        return draw.choice([*STRINGS, draw.choice(LONG), node * 2, node[1:], mutated_string(node, draw)])
    if isinstance(node, list):
        return draw.choice([[], node[:-1], node + node, [node], node[::-1], node * 100])
    if isinstance(node, dict):
        return draw.choice([{}, dict(list(node.items())[:-1]), {**node, "unknown": 0}, {"": node}])
    return _any_value(draw)


def mutated_string(text: str, draw: random.Random) -> str:
    """Replace a character, such as one of a base64 that holds tables, or of a regular expression."""
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(["A", "/", "+", "=", "*", "(", "\\", "\0", "é", "{9999}", "|"]) + text[at + 1 :]
