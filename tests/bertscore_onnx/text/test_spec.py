import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.text.normalizers import any_of
from bertscore_onnx.text.spec import SpecialToken, compile_split

SEP = SpecialToken(content="</s>", id=2)
MASK = SpecialToken(content="<mask>", id=9, lstrip=True)
EXTRA = SpecialToken(content="<extra_1>", id=7, lstrip=True, rstrip=True)
WUG = SpecialToken(content="wug", id=5, single_word=True)
EXTRA_LONG = SpecialToken(content="<extra_1>0", id=8)


@pytest.mark.parametrize(
    ("tokens", "text", "parts"),
    [
        ([SEP], "a b", ["a b"]),
        ([SEP], "a </s>b</s>", ["a ", 2, "b", 2]),
        ([MASK, EXTRA], "a <mask> b <extra_1> ", ["a", 9, " b", 7]),
        ([EXTRA, EXTRA_LONG], "<extra_1>0", [8]),
        ([SEP], "", []),
        ([], "", []),
    ],
    ids=["none", "some", "spaces beside them", "the longest", "empty", "empty without tokens"],
)
def test_special_tokens_become_ids(tokens, text, parts):
    assert compile_split(tokens)(text) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("wug", [5]),
        ("a wug b", ["a ", 5, " b"]),
        ("wugs", ["wugs"]),
        ("a wugs", ["a ", "wugs"]),
        ("a.wug b", ["a.wug", " b"]),
        ("a\twug", ["a\twug"]),
        ("wugwug", ["wugwug"]),
        ("</s>wug", ["</s>wug"]),
        ("wug </s>", [5, " ", 2]),
    ],
)
def test_a_special_token_may_have_to_be_a_word(text, parts):
    assert compile_split([WUG, SEP])(text) == parts


@given(st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1), st.text("ab.", max_size=30))
def test_the_longest_string_that_begins_at_a_place_is_found(literals, text):
    plain = "|".join(map(re.escape, sorted(literals, key=len, reverse=True)))
    assert any_of(literals).split(text) == re.split(f"({plain})", text)
