import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.text.normalizers import normalize

MARKS = [one for one in map(chr, range(0x300, 0x20000)) if unicodedata.combining(unicodedata.normalize("NFD", one)[0])]
LETTERS = "aeÅé ǖ한ᄀ\u1161\u11a8\u09c7\u09be\u034f😀\ud800"
forms = pytest.mark.parametrize("form", ["NFC", "NFD"])

runs = st.builds(
    lambda pattern, times: pattern * times,
    st.text(st.sampled_from(MARKS) | st.sampled_from("\u0f73\u0f75\u0f81\u0344\u0301\u0327"), min_size=1, max_size=7),
    st.integers(1, 40),
)
texts = st.lists(st.text(st.sampled_from(LETTERS), max_size=3) | runs, max_size=6).map("".join)


@forms
@given(texts)
def test_it_is_the_normal_form_of_unicode(form, text):
    assert normalize(form, text) == unicodedata.normalize(form, text)


@forms
@pytest.mark.parametrize("length", [63, 64, 65, 128, 1000])
@pytest.mark.parametrize(
    "marks", ["\u0301\u0327", "\u0f73", "\u0f81\u0327", "\u0344\u0316", "\u302e\U0001d165", "\u0327\u0301"]
)
@pytest.mark.parametrize("before", ["", "a", "é", "x" * 31, "한"])
def test_runs_of_any_length_are_put_in_order(form, before, marks, length):
    text = before + (marks * length)[:length] + "b\u0301"
    assert normalize(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_every_character_alone_and_between_marks(form):
    for one in map(chr, range(0x110000)):
        assert normalize(form, one) == unicodedata.normalize(form, one)
    for one in MARKS:
        text = "a" + f"{one}\u0327\u0301" * 22
        assert normalize(form, text) == unicodedata.normalize(form, text)
