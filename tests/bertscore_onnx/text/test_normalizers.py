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
    bind_normalizers,
)


@pytest.fixture
def uncased() -> BasicTokenize:
    return BasicTokenize(lowercase=True, strip_accents=True, split_chinese=True, never_split=[])


def test_prefix_space_goes_in_front() -> None:
    assert PrefixSpace().bind()("a b") == " a b"


def test_lowercase_lowers_each_character_by_itself() -> None:
    assert Lowercase(never_lower=[]).bind()("ΣΑΣ İ") == "σασ i\u0307"


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
    assert Lowercase(never_lower=["[CLS]", "[SEP]"]).bind()("A[CLS]B[Sep]") == "a[CLS]b[sep]"


def test_lowercase_may_make_a_special_token() -> None:
    assert Lowercase(never_lower=["<unk>"]).bind()("<UNK>") == "<unk>"


def test_basic_tokenize_sets_punctuation_apart(uncased: BasicTokenize) -> None:
    assert uncased.bind()("Don't—stop!").split() == ["don", "'", "t", "—", "stop", "!"]


def test_basic_tokenize_strips_accents(uncased: BasicTokenize) -> None:
    assert uncased.bind()("Ångström cafe\u0301") == "angstrom cafe"


def test_basic_tokenize_keeps_case_and_accents_when_told() -> None:
    step = BasicTokenize(lowercase=False, strip_accents=False, split_chinese=True, never_split=[])
    assert step.bind()("Cafe\u0301") == "Café"


def test_basic_tokenize_sets_ideographs_apart(uncased: BasicTokenize) -> None:
    assert uncased.bind()("中文a").split() == ["中", "文", "a"]


def test_basic_tokenize_leaves_ideographs_together_when_told() -> None:
    step = BasicTokenize(lowercase=False, strip_accents=False, split_chinese=False, never_split=[])
    assert step.bind()("中文a") == "中文a"


def test_basic_tokenize_drops_control_characters(uncased: BasicTokenize) -> None:
    assert uncased.bind()("a\u0000b\u200bc\ufffdd\u0378e") == "abcde"


def test_basic_tokenize_makes_white_space_plain(uncased: BasicTokenize) -> None:
    assert uncased.bind()("a\tb\u3000c\nd") == "a b c d"


def test_basic_tokenize_lowers_a_final_sigma_by_its_word(uncased: BasicTokenize) -> None:
    assert uncased.bind()("ΣΑΣ ΣΑ") == "σας σα"


def test_basic_tokenize_keeps_a_word_that_cleaning_makes_a_special_token() -> None:
    step = BasicTokenize(lowercase=True, strip_accents=False, split_chinese=True, never_split=["[CLS]"])
    assert step.bind()("A [C\u0001LS] b[CLS] [cls]").split() == ["a", "[CLS]", "b", "[", "cls", "]", "[", "cls", "]"]


def test_clean_quotes_makes_quotation_marks_plain() -> None:
    step = CleanQuotes(collapse_space=True, strip_accents=False, lowercase=False)
    assert step.bind()("  ``a''\t b\u3000c ") == '"a" b c'


def test_clean_quotes_strips_accents_and_case() -> None:
    step = CleanQuotes(collapse_space=True, strip_accents=True, lowercase=True)
    assert step.bind()("Łódź Ångström ﬁne ½") == "łodz angstrom fine 1⁄2"


@given(st.text())
def test_clean_quotes_drops_what_combines_in_the_compatibility_decomposition(text: str) -> None:
    step = CleanQuotes(collapse_space=False, strip_accents=True, lowercase=False)
    plain = text.replace("``", '"').replace("''", '"')
    assert step.bind()(text) == "".join(
        one for one in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(one)
    )


def test_clean_quotes_keeps_spaces_when_told() -> None:
    step = CleanQuotes(collapse_space=False, strip_accents=True, lowercase=False)
    assert step.bind()(" a  b ") == " a  b "


def test_separate_words_keeps_a_line_break_with_its_word() -> None:
    assert SeparateWords().bind()("a  b\nc \n d") == "a b\n c d"


def test_separate_words_splits_at_pythons_white_space() -> None:
    assert SeparateWords().bind()("a\x1cb\u2028c") == "a b c"


def test_separate_dialogue_puts_spaces_before_marks_and_around_apostrophes() -> None:
    assert SeparateDialogue().bind()("I'm fine, (OK)!") == "i ' m fine , (ok ) !"


def test_separate_dialogue_names_a_line_break() -> None:
    assert SeparateDialogue().bind()("one\ntwo") == "one __newln__ two"


def test_separate_dialogue_drops_a_line_break_after_an_apostrophe() -> None:
    assert SeparateDialogue().bind()("one'\ntwo") == "one ' two"


def test_separate_dialogue_takes_a_file_separator_for_a_letter() -> None:
    assert SeparateDialogue().bind()("a\x1cb") == "a\x1cb"


def test_moses_sets_words_and_marks_apart() -> None:
    pytest.importorskip("sacremoses")
    step = Moses(lowercase_and_strip_accents=True)
    assert step.bind()("Héllo。Wörld！ “Yes”…") == 'hello . world ! " yes ... "'


def test_moses_keeps_case_and_accents_when_told() -> None:
    pytest.importorskip("sacremoses")
    step = Moses(lowercase_and_strip_accents=False)
    assert step.bind()("Don't go to Zürich.") == "Don 't go to Zürich ."


def test_moses_gives_the_words_of_sacremoses_itself() -> None:
    """Its look-ups of letters and abbreviations are replaced by quicker ones."""
    sacremoses = pytest.importorskip("sacremoses")
    words = sacremoses.MosesTokenizer(lang="en").tokenize
    step = Moses(lowercase_and_strip_accents=False).bind()
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
        Moses(lowercase_and_strip_accents=True).bind()


def test_unknown_words_are_whole_words() -> None:
    step = UnknownWords(words=["U.S.", "us"], unknown_token="[UNK]")  # noqa: S106 -- a token of a text
    assert step.bind()("the U.S. of us , user U.S") == "the [UNK] of [UNK] , user U.S"


def test_steps_follow_one_another() -> None:
    assert bind_normalizers([PrefixSpace(), Lowercase(never_lower=[])])("A") == " a"
