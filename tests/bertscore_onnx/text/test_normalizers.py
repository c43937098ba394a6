import re
import sys
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.errors import MissingExtraError
from bertscore_onnx.text.normalizers import (
    MAX_CHARACTERS,
    BasicTokenize,
    CharacterMap,
    CleanQuotes,
    Compose,
    Lowercase,
    Moses,
    PrefixSpace,
    SeparateDialogue,
    SeparateWords,
    UnknownWords,
    any_of,
    compile_normalizers,
    normalize,
)

UNCASED = BasicTokenize(lowercase=True, strip_accents=True, split_chinese=True, never_split=[])
CASED = BasicTokenize(lowercase=False, strip_accents=False, split_chinese=False, never_split=[])
KEPT = BasicTokenize(lowercase=True, strip_accents=False, split_chinese=True, never_split=["[CLS]"])
QUOTES = CleanQuotes(collapse_space=True, strip_accents=False, lowercase=False)
UNACCENTED = CleanQuotes(collapse_space=True, strip_accents=True, lowercase=True)
SPACED = CleanQuotes(collapse_space=False, strip_accents=True, lowercase=False)
UNKNOWN = UnknownWords(words=["U.S.", "us"], unknown_token="[UNK]")  # noqa: S106 -- a token of a text


@pytest.mark.parametrize(
    ("normalizer", "text", "expected"),
    [
        pytest.param(PrefixSpace(), "a b", " a b", id="prefix space"),
        pytest.param(
            Lowercase(never_lower=[]), "ΣΑΣ İ", "σασ i\u0307", id="each character by itself"
        ),
        pytest.param(
            Lowercase(never_lower=["[CLS]", "[SEP]"]),
            "A[CLS]B[Sep]",
            "a[CLS]b[sep]",
            id="special tokens",
        ),
        pytest.param(
            Lowercase(never_lower=["<unk>"]), "<UNK>", "<unk>", id="becomes a special token"
        ),
        pytest.param(UNCASED, "Don't—stop!", "don ' t — stop ! ", id="punctuation"),
        pytest.param(UNCASED, "Ångström cafe\u0301", "angstrom cafe", id="accents"),
        pytest.param(UNCASED, "中文a", " 中  文 a", id="ideographs"),
        pytest.param(UNCASED, "a\u0000b\u200bc\ufffdd\u0378e", "abcde", id="controls"),
        pytest.param(UNCASED, "a\tb\u3000c\nd", "a b c d", id="white space"),
        pytest.param(UNCASED, "ΣΑΣ ΣΑ", "σας σα", id="a final sigma by its word"),
        pytest.param(CASED, "Cafe\u0301", "Café", id="case and accents stay"),
        pytest.param(CASED, "中文a", "中文a", id="ideographs stay together"),
        pytest.param(
            KEPT,
            "A [C\u0001LS] b[CLS] [cls]",
            "a [CLS] b [ cls ]   [ cls ] ",
            id="kept after cleaning",
        ),
        pytest.param(QUOTES, "  ``a''\t b\u3000c ", '"a" b c', id="quotation marks"),
        pytest.param(
            UNACCENTED, "Łódź Ångström ﬁne ½", "łodz angstrom fine 1⁄2", id="compatibility forms"
        ),
        pytest.param(SPACED, " a  b ", " a  b ", id="spaces stay"),
        pytest.param(
            SeparateWords(), "a  b\nc \n d", "a b\n c d", id="a line break belongs to its word"
        ),
        pytest.param(SeparateWords(), "a\x1cb\u2028c", "a b c", id="white space of Python"),
        pytest.param(
            SeparateDialogue(),
            "I'm fine, (OK)!",
            "i ' m fine , (ok ) !",
            id="marks and apostrophes",
        ),
        pytest.param(
            SeparateDialogue(), "one\ntwo", "one __newln__ two", id="line breaks are named"
        ),
        pytest.param(
            SeparateDialogue(),
            "one'\ntwo",
            "one ' two",
            id="a line break after an apostrophe is dropped",
        ),
        pytest.param(SeparateDialogue(), "a\x1cb", "a\x1cb", id="a file separator is a letter"),
        pytest.param(
            UNKNOWN, "the U.S. of us , user U.S", "the [UNK] of [UNK] , user U.S", id="whole words"
        ),
    ],
)
def test_a_text_is_changed(normalizer, text, expected):
    assert normalizer.compile()(text) == expected


@given(st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1), st.text("ab.", max_size=30))
def test_the_longest_string_that_begins_at_a_place_is_found(literals, text):
    plain = "|".join(map(re.escape, sorted(literals, key=len, reverse=True)))
    assert any_of(literals).split(text) == re.split(f"({plain})", text)


def test_normalizers_are_applied_in_their_order():
    assert compile_normalizers([PrefixSpace(), Lowercase(never_lower=[])])("A") == " a"


def test_a_character_map_does_not_grow_without_end():
    computed = []
    lowered = CharacterMap(lambda character: computed.append(character) or character.lower())
    texts = ["ABCDE", "".join(map(chr, range(0x10000, 0x10000 + MAX_CHARACTERS))), "FGHIJ"]
    assert [text.translate(lowered) for text in texts] == [text.lower() for text in texts]
    assert len(lowered) <= MAX_CHARACTERS
    computed.clear()
    ("XY" * 9).translate(lowered)
    assert computed == ["X", "Y"]


@given(st.text())
def test_clean_quotes_drops_combining_compatibility_marks(text):
    plain = text.replace("``", '"').replace("''", '"')
    decomposed = unicodedata.normalize("NFKD", plain)
    assert SPACED.compile()(text) == "".join(
        part for part in decomposed if not unicodedata.combining(part)
    )


@pytest.mark.parametrize(("lowercase", "expected"), [(False, 'É "A" »'), (True, 'é "a" »')])
def test_compose_joins_accents_and_replaces_quotes(lowercase, expected):
    assert Compose(lowercase).compile()("E\u0301 ``A'' »") == expected


def test_moses_keeps_a_french_apostrophe_with_its_article():
    pytest.importorskip("sacremoses")
    moses = Moses(lowercase_and_strip_accents=False, language="fr")
    assert moses.compile()("L'été n'est pas fini.") == "L' été n' est pas fini ."


@pytest.mark.parametrize(
    ("lowered", "text", "expected"),
    [
        (True, "Héllo。Wörld！ “Yes”…", 'hello . world ! " yes ... "'),
        (False, "Don't go to Zürich.", "Don 't go to Zürich ."),
    ],
)
def test_moses_sets_words_and_marks_apart(lowered, text, expected):
    pytest.importorskip("sacremoses")
    assert Moses(lowercase_and_strip_accents=lowered).compile()(text) == expected


def test_moses_gives_the_words_of_sacremoses_itself():
    """Its look-ups of letters and abbreviations are replaced by quicker ones."""
    sacremoses = pytest.importorskip("sacremoses")
    words = sacremoses.MosesTokenizer(lang="en").tokenize
    step = Moses(lowercase_and_strip_accents=False).compile()
    endings = ["Mr.", "No.", "U.S.", "e.g.", "1.2.", "..", "a.", "St.", "é.à.", "etc.", "中.文."]
    for word in endings:
        for after in ["", "small", "Large", "7", "été", "Éa", "中", ".", "-"]:
            text = f"A {word} {after}".strip()
            assert step(text) == words(text, return_str=True, escape=False), text


@pytest.mark.parametrize("module", ["sacremoses", "regex"])  # itself, or what it needs
def test_moses_names_what_to_install(module, monkeypatch):
    pytest.importorskip("sacremoses")
    monkeypatch.setitem(sys.modules, module, None)
    for name in [
        name
        for name in sys.modules
        if name.startswith("sacremoses.") or name == "sacremoses" != module
    ]:
        monkeypatch.delitem(sys.modules, name)

    with pytest.raises(MissingExtraError, match=rf"{module}.*sacremoses>="):
        Moses(lowercase_and_strip_accents=True).compile()


MARKS = [
    one
    for one in map(chr, range(0x300, 0x20000))
    if unicodedata.combining(unicodedata.normalize("NFD", one)[0])
]
LETTERS = "aeÅé ǖ한ᄀ\u1161\u11a8\u09c7\u09be\u034f😀\ud800"
forms = pytest.mark.parametrize("form", ["NFC", "NFD"])

runs = st.builds(
    lambda pattern, times: pattern * times,
    st.text(
        st.sampled_from(MARKS) | st.sampled_from("\u0f73\u0f75\u0f81\u0344\u0301\u0327"),
        min_size=1,
        max_size=7,
    ),
    st.integers(1, 40),
)
texts = st.lists(st.text(st.sampled_from(LETTERS), max_size=3) | runs, max_size=6).map("".join)


@forms
@given(texts)
def test_it_is_the_normal_form_of_unicode(form, text):
    assert normalize(form, text) == unicodedata.normalize(form, text)


@forms
def test_runs_of_any_length_are_put_in_order(form):
    marks = [
        "\u0301\u0327",
        "\u0f73",
        "\u0f81\u0327",
        "\u0344\u0316",
        "\u302e\U0001d165",
        "\u0327\u0301",
    ]
    for before, run, length in product(
        ["", "a", "é", "x" * 31, "한"], marks, [63, 64, 65, 128, 1000]
    ):
        text = before + (run * length)[:length] + "b\u0301"
        assert normalize(form, text) == unicodedata.normalize(form, text), (before, run, length)


@forms
def test_every_character_alone_and_between_marks(form):
    for one in map(chr, range(0x110000)):
        assert normalize(form, one) == unicodedata.normalize(form, one)
    for one in MARKS:
        text = "a" + f"{one}\u0327\u0301" * 22
        assert normalize(form, text) == unicodedata.normalize(form, text)
