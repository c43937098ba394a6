import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.errors import MissingExtraError
from bertscore_onnx.text.normalizers import (
    MAX_CHARACTERS,
    BasicTokenize,
    CharacterMap,
    CleanQuotes,
    Lowercase,
    Moses,
    PrefixSpace,
    SeparateDialogue,
    SeparateWords,
    UnknownWords,
    compile_normalizers,
    normalize,
)


@pytest.fixture
def uncased() -> BasicTokenize:
    return BasicTokenize(lowercase=True, strip_accents=True, split_chinese=True, never_split=[])


def test_prefix_space_goes_in_front() -> None:
    assert PrefixSpace().compile()("a b") == " a b"


def test_lowercase_lowers_each_character_by_itself() -> None:
    assert Lowercase(never_lower=[]).compile()("ΣΑΣ İ") == "σασ i\u0307"


def test_a_character_map_does_not_grow_without_end() -> None:
    lowered = CharacterMap(str.lower)
    texts = ["ABCDE", "".join(map(chr, range(0x10000, 0x10000 + MAX_CHARACTERS))), "FGHIJ"]
    assert [text.translate(lowered) for text in texts] == [text.lower() for text in texts]
    assert len(lowered) <= MAX_CHARACTERS


def test_a_character_map_computes_characters_once_also_after_a_text_of_all_characters() -> None:
    computed: list[str] = []
    noted = CharacterMap(lambda one: computed.append(one) or one)  # type: ignore[func-returns-value]
    "".join(map(chr, range(0x10000, 0x10000 + MAX_CHARACTERS))).translate(noted)
    computed.clear()
    ("AB" * 9).translate(noted)
    assert computed == ["A", "B"]


def test_lowercase_leaves_literal_special_tokens() -> None:
    assert Lowercase(never_lower=["[CLS]", "[SEP]"]).compile()("A[CLS]B[Sep]") == "a[CLS]b[sep]"


def test_lowercase_may_make_a_special_token() -> None:
    assert Lowercase(never_lower=["<unk>"]).compile()("<UNK>") == "<unk>"


def test_basic_tokenize_sets_punctuation_apart(uncased: BasicTokenize) -> None:
    assert uncased.compile()("Don't—stop!").split() == ["don", "'", "t", "—", "stop", "!"]


def test_basic_tokenize_strips_accents(uncased: BasicTokenize) -> None:
    assert uncased.compile()("Ångström cafe\u0301") == "angstrom cafe"


def test_basic_tokenize_keeps_case_and_accents_when_told() -> None:
    step = BasicTokenize(lowercase=False, strip_accents=False, split_chinese=True, never_split=[])
    assert step.compile()("Cafe\u0301") == "Café"


def test_basic_tokenize_sets_ideographs_apart(uncased: BasicTokenize) -> None:
    assert uncased.compile()("中文a").split() == ["中", "文", "a"]


def test_basic_tokenize_leaves_ideographs_together_when_told() -> None:
    step = BasicTokenize(lowercase=False, strip_accents=False, split_chinese=False, never_split=[])
    assert step.compile()("中文a") == "中文a"


def test_basic_tokenize_drops_control_characters(uncased: BasicTokenize) -> None:
    assert uncased.compile()("a\u0000b\u200bc\ufffdd\u0378e") == "abcde"


def test_basic_tokenize_makes_white_space_plain(uncased: BasicTokenize) -> None:
    assert uncased.compile()("a\tb\u3000c\nd") == "a b c d"


def test_basic_tokenize_lowers_a_final_sigma_by_its_word(uncased: BasicTokenize) -> None:
    assert uncased.compile()("ΣΑΣ ΣΑ") == "σας σα"


def test_basic_tokenize_keeps_a_word_that_cleaning_makes_a_special_token() -> None:
    step = BasicTokenize(lowercase=True, strip_accents=False, split_chinese=True, never_split=["[CLS]"])
    assert step.compile()("A [C\u0001LS] b[CLS] [cls]").split() == ["a", "[CLS]", "b", "[", "cls", "]", "[", "cls", "]"]


def test_clean_quotes_makes_quotation_marks_plain() -> None:
    step = CleanQuotes(collapse_space=True, strip_accents=False, lowercase=False)
    assert step.compile()("  ``a''\t b\u3000c ") == '"a" b c'


def test_clean_quotes_strips_accents_and_case() -> None:
    step = CleanQuotes(collapse_space=True, strip_accents=True, lowercase=True)
    assert step.compile()("Łódź Ångström ﬁne ½") == "łodz angstrom fine 1⁄2"


@given(st.text())
def test_clean_quotes_drops_what_combines_in_the_compatibility_decomposition(text: str) -> None:
    step = CleanQuotes(collapse_space=False, strip_accents=True, lowercase=False)
    plain = text.replace("``", '"').replace("''", '"')
    assert step.compile()(text) == "".join(
        one for one in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(one)
    )


def test_clean_quotes_keeps_spaces_when_told() -> None:
    step = CleanQuotes(collapse_space=False, strip_accents=True, lowercase=False)
    assert step.compile()(" a  b ") == " a  b "


def test_separate_words_keeps_a_line_break_with_its_word() -> None:
    assert SeparateWords().compile()("a  b\nc \n d") == "a b\n c d"


def test_separate_words_splits_at_pythons_white_space() -> None:
    assert SeparateWords().compile()("a\x1cb\u2028c") == "a b c"


def test_separate_dialogue_puts_spaces_before_marks_and_around_apostrophes() -> None:
    assert SeparateDialogue().compile()("I'm fine, (OK)!") == "i ' m fine , (ok ) !"


def test_separate_dialogue_names_a_line_break() -> None:
    assert SeparateDialogue().compile()("one\ntwo") == "one __newln__ two"


def test_separate_dialogue_drops_a_line_break_after_an_apostrophe() -> None:
    assert SeparateDialogue().compile()("one'\ntwo") == "one ' two"


def test_separate_dialogue_takes_a_file_separator_for_a_letter() -> None:
    assert SeparateDialogue().compile()("a\x1cb") == "a\x1cb"


def test_moses_sets_words_and_marks_apart() -> None:
    pytest.importorskip("sacremoses")
    step = Moses(lowercase_and_strip_accents=True)
    assert step.compile()("Héllo。Wörld！ “Yes”…") == 'hello . world ! " yes ... "'


def test_moses_keeps_case_and_accents_when_told() -> None:
    pytest.importorskip("sacremoses")
    step = Moses(lowercase_and_strip_accents=False)
    assert step.compile()("Don't go to Zürich.") == "Don 't go to Zürich ."


def test_moses_gives_the_words_of_sacremoses_itself() -> None:
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
def test_moses_names_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sacremoses")
    monkeypatch.setitem(sys.modules, module, None)
    for name in [name for name in sys.modules if name.startswith("sacremoses.") or name == "sacremoses" != module]:
        monkeypatch.delitem(sys.modules, name)

    with pytest.raises(MissingExtraError, match=rf"needs {module}, .*pip install 'bertscore-onnx\[xlm\]'"):
        Moses(lowercase_and_strip_accents=True).compile()


def test_unknown_words_are_whole_words() -> None:
    step = UnknownWords(words=["U.S.", "us"], unknown_token="[UNK]")  # noqa: S106 -- a token of a text
    assert step.compile()("the U.S. of us , user U.S") == "the [UNK] of [UNK] , user U.S"


def test_steps_follow_one_another() -> None:
    assert compile_normalizers([PrefixSpace(), Lowercase(never_lower=[])])("A") == " a"


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
