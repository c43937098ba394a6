import struct

import pytest

from bertscore_onnx.text.charsmap import Charsmap


def compiled(replacements: dict[str, str]) -> bytes:
    """Compile a table as simply as it goes: every node has a block of 256 units to itself."""
    nodes: dict[bytes, dict[int, bytes]] = {b"": {}}
    for key in sorted(key.encode() for key in replacements):
        for end in range(1, len(key) + 1):
            nodes.setdefault(key[:end], {})
            nodes[key[: end - 1]][key[end - 1]] = key[:end]
    blocks = {name: (place + 1) * 256 for place, name in enumerate(nodes)}
    values = b""
    units = [0] * ((len(nodes) + 1) * 256)
    places = {b"": 0} | {
        below: blocks[name] ^ label for name, children in nodes.items() for label, below in children.items()
    }
    for name, place in places.items():
        offset = place ^ blocks[name]
        units[place] = (offset << 10 if offset < 1 << 21 else (offset >> 8) << 10 | 1 << 9) | (name[-1] if name else 0)
        value = replacements.get(name.decode(errors="replace")) if name else None
        if value is not None:
            units[place] |= 1 << 8
            units[blocks[name]] = 1 << 31 | len(values)
            values += value.encode() + b"\0"
    array = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(array)) + array + values


def test_an_empty_table_replaces_nothing() -> None:
    assert Charsmap(b"")("aé½") == "aé½"


def test_single_characters_are_replaced() -> None:
    assert Charsmap(compiled({"½": "1/2", "\t": " "}))("a½\tb") == "a1/2 b"


def test_a_character_may_vanish() -> None:
    assert Charsmap(compiled({"\u200b": ""}))("a\u200bb") == "ab"


def test_the_longest_string_wins() -> None:
    replace = Charsmap(compiled({"e": "E", "e\u0301": "é", "e\u0301x": "!"}))

    assert replace("e e\u0301 e\u0301x") == "E é !"


def test_a_string_begun_but_not_ended_is_replaced_as_far_as_known() -> None:
    replace = Charsmap(compiled({"a": "1", "abc": "3", "bc": "2"}))

    assert replace("aba") == "1b1"


def test_untouched_strings_go_first() -> None:
    replace = Charsmap(compiled({"½": "1/2", "e\u0301": "é", "<": "("}), untouched=["½", "e", "<eop>"])

    assert replace("½ e\u0301 < <eop>") == "½ e\u0301 ( <eop>"


def test_a_broken_table_is_an_error() -> None:
    with pytest.raises((ValueError, IndexError)):
        Charsmap(b"\x05\x00\x00\x00abcde")
