"""A `tokenizer.json` is refused if it may take more time or memory than its budget; usual ones are
not.
"""

from base64 import b64encode

import pytest
from tokenizers import Tokenizer

from bertscore_onnx.errors import TokenizerError
from bertscore_onnx.text.vocabulary import Vocabulary
from tests.bertscore_onnx.text.test_patterns import GPT2, GPT4, GPT4O, GROUPS_OF_DIGITS
from tests.bertscore_onnx.text.test_tokenizer import VOCAB, damaged, ids

ADDED = {"id": 6, "content": "x" * 1000, "special": True}
ADDED |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
PANIC = {
    "type": "BPE",
    "continuing_subword_prefix": "####",
    "vocab": {"a": 0, "b": 1},
    "merges": [["a", "b"]],
}


def charsmap(content):
    written = content if isinstance(content, str) else b64encode(content).decode()
    return {"type": "Precompiled", "precompiled_charsmap": written}


def normalizing(*stages):
    return {"normalizer": {"type": "Sequence", "normalizers": list(stages)}}


def replacing(pattern, content, times=1):
    return normalizing(*[{"type": "Replace", "pattern": pattern, "content": content}] * times)


def cutting(*stages):
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": list(stages)}}


def splitting(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": True,
    "trim_offsets": True,
    "use_regex": False,
}
TEXT = {"Sequence": {"id": "A", "type_id": 0}}


def framing(special, texts=1):
    part = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [1] * 20, "tokens": ["[CLS]"] * 20}}
    single = [part] * special + [TEXT] * texts
    processor = {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [TEXT],
        "special_tokens": tokens,
    }
    return {"post_processor": processor}


def modelled(kind, vocab=VOCAB, **settings):
    return {"model": {"type": kind, "vocab": vocab, "unk_token": "[UNK]", **settings}}


def wordpiece(**settings):
    return modelled("WordPiece", continuing_subword_prefix="##", **settings)


def merging(**settings):
    return modelled("BPE", **{"merges": [], **settings})


def unigram(*tokens):
    return modelled("Unigram", [["[UNK]", 0.0], *([token, -1.0] for token in tokens)], unk_id=0)


@pytest.mark.parametrize(
    "changes",
    [
        cutting(splitting(GPT2), BYTE_LEVEL),
        cutting(splitting(GPT4), BYTE_LEVEL),
        cutting(splitting(GPT4O), BYTE_LEVEL),
        cutting(splitting(GROUPS_OF_DIGITS)),
        cutting(splitting(r" ?[^(\s|[.,!?])]+")),
        replacing({"String": " "}, "\u2581", times=20),
        replacing({"Regex": " {2,}"}, " ", times=20),
        normalizing(
            {"type": "Prepend", "prepend": "\u2581"}, {"type": "NFKC"}, {"type": "Lowercase"}
        ),
        framing(2),
        wordpiece(max_input_chars_per_word=100),
        merging(dropout=None),
        merging(dropout=0.0),
        unigram("x" * 100),
        {"added_tokens": [ADDED]},
    ],
)
def test_usual_parts_are_loaded(tmp_path, changes):
    assert damaged(tmp_path, **changes)(["a b"])[0][0].size


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (cutting(splitting("(a+)+$")), "exponential"),
        (replacing({"Regex": "(a|a)+$"}, "b"), "exponential"),
        (cutting(splitting(r"(?<x>a\g<x>?)")), "without calls"),
        (
            {"decoder": {"type": "Replace", "pattern": {"Regex": "a{100000}"}, "content": ""}},
            "10,000 parts",
        ),
        (cutting(splitting("a*a*b")), "steps for a text of 1,000 characters"),
        (cutting(splitting("x" * 1001)), "its Split has a string of 1,001 characters"),
        (replacing({"String": "a"}, "b" * 1001), "its Replace has a string of 1,001 characters"),
        (replacing({"String": "a"}, "a" * 10, times=9), "add more than 1,000,000 bytes"),
        (replacing({"Regex": "."}, "aa", times=20), "add more than 1,000,000 bytes"),
        (replacing({"Regex": "(?=a)"}, "a", times=20), "add more than 1,000,000 bytes"),
        (replacing({"String": "a"}, "a", times=21), "21 normalizers"),
        (cutting(*[{"type": "Whitespace"}] * 21), "21 pretokenizers"),
        (cutting(BYTE_LEVEL, BYTE_LEVEL), "2 of its pre-tokenizers may lengthen"),
        (normalizing({"type": "Prepend", "prepend": "ab"}), "prepends 2 characters"),
        ({"normalizer": {"normalizers": [{"type": "NFC"}]}}, "has no type"),
        ({"normalizer": {"type": "Another"}}, "type 'Another', which is not known"),
        (
            {"normalizer": charsmap(b"\x04\x00\x00\x00abcd" + b"x" * 2000)},
            "replacement of 2,000 bytes",
        ),
        (framing(99), "1,980 tokens around"),
        (framing(1, texts=2), "several times"),
        (wordpiece(max_input_chars_per_word=10**9), "longest word has 1,000,000,000 characters"),
        (
            modelled("WordPiece", continuing_subword_prefix="#" * 101),
            "longest prefix has 101 characters",
        ),
        (merging(end_of_word_suffix="#" * 101), "longest suffix has 101 characters"),
        (
            modelled("WordLevel", {"u" * 101: 0}, unk_token="u" * 101),
            "longest unknown token has 101 characters",
        ),
        (unigram("x" * 101), "longest token has 101 characters"),
        (merging(vocab={"a": 0, "x" * 999: 0}), "two of its tokens have the same id"),
        (
            merging(dropout=0.3),
            '"dropout" is 0.3, .* at random in every call; set it to null in the model\'s '
            "tokenizer",
        ),
        (modelled("WordLevel", {"[UNK]": 0, "a": 2**31}), "id 2147483648"),
        *(({"normalizer": charsmap(one)}, "") for one in ("", "!", "AAAA", b"\x04\x00\x00\x00abc")),
        (normalizing(charsmap(b"\xff\xff\xff\xfe" * 99)), "4,278,190,079"),
        ({"model": PANIC}, "byte index 4 is out of bounds"),
        ({"added_tokens": [{**ADDED, "content": "x" * 1001}]}, "1,001 characters"),
        (
            {"added_tokens": [{**ADDED, "id": index} for index in range(1001)]},
            "tokens of 1,001,000 characters",
        ),
        (
            replacing({"String": "x"}, "y" * 999)
            | {"added_tokens": [{**ADDED, "normalized": True}] * 2},
            "add more than 1,000,000 bytes",
        ),
        (
            replacing({"String": "a"}, "y" * 500)
            | {"added_tokens": [{**ADDED, "content": "a" * 900, "normalized": True}]},
            "450,000 characters once normalised",
        ),
        *((cutting(splitting(source)), "is empty") for source in ("", "|", "(?i)")),
        (replacing({"String": ""}, "y"), "is empty"),
    ],
)
def test_a_part_that_does_harm_is_refused_when_it_is_loaded(tmp_path, changes, message):
    with pytest.raises(TokenizerError, match=f"is not a tokenizer.*{message}"):
        damaged(tmp_path, **changes)
    with pytest.raises(TokenizerError, match=f"is not a tokenizer.*{message}"):
        Vocabulary(tmp_path / "tokenizer.json", None, [])


def test_the_tokens_and_merges_of_a_vocabulary_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.text.tokenizer_json.MAX_TOKENS", 6)
    damaged(tmp_path, **merging())
    for changes in (merging(vocab=VOCAB | {"d": 6}), merging(merges=["a b"] * 7)):
        with pytest.raises(TokenizerError, match=r"it has 7 (tokens|merges), and at most 6"):
            damaged(tmp_path, **changes)


def test_the_common_beginnings_of_tokens_count_once(tmp_path, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.text.tokenizer_json.MAX_TRIE_BYTES", 29)
    damaged(
        tmp_path, **unigram(*("abcdefghij"[:length] for length in range(1, 11)), "abcdé" + "f" * 12)
    )
    with pytest.raises(TokenizerError, match="its tokens have 30 bytes, and at most 29"):
        damaged(
            tmp_path,
            **unigram(*("abcdefghij"[:length] for length in range(1, 11)), "abcdé" + "f" * 13),
        )


@pytest.mark.parametrize(
    ("changes", "text", "message"),
    [
        (replacing({"String": "é"}, "b" * 900), "é" * 900_000, "add more than 1,000,000 bytes"),
        (normalizing({"type": "NFKC"}), "\ufdfa" * 200_000, "add more than 1,000,000 bytes"),
        (normalizing({"type": "NFKD"}), "\ufdfa" * 200_000, "add more than 1,000,000 bytes"),
        (replacing({"String": "é"}, "é" * 9, times=9), "é", "add more than 1,000,000 bytes"),
        (cutting(splitting(r"\s+$")), "a" + " " * 100_000 + "a", "steps to search a text"),
        (cutting(splitting(GROUPS_OF_DIGITS)), "1" * 100_000, "steps to search a text"),
        (
            cutting(BYTE_LEVEL, splitting("Ġ+x")),
            "b" + " " * 50_000 + "a" * 50_000,
            "steps to search a text",
        ),
        (replacing({"Regex": r"\s+$"}, ""), "a" + " " * 100_000 + "a", "steps to search a text"),
        (
            normalizing(
                {"type": "Replace", "pattern": {"String": "é"}, "content": "x" * 900},
                {"type": "Replace", "pattern": {"Regex": "x+"}, "content": ""},
            ),
            "é" * 900_000,
            "add more than 1,000,000 bytes",
        ),
    ],
)
def test_a_text_that_would_do_harm_is_refused(tmp_path, changes, text, message):
    encode = damaged(tmp_path, **changes)
    with pytest.raises(
        TokenizerError,
        match=f"cannot encode a text of {len(text):,} characters: .*{message}.*Shorten",
    ):
        encode(["a", text])
    assert encode(["a b"])[0][0].size


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (normalizing({"type": "NFKC"}), "\ufdfa" * 20_000),
        (normalizing({"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                      "strip_accents": None, "lowercase": True}), "中文。" * 100_000),
        (cutting(splitting(GROUPS_OF_DIGITS)), "It was 1234567 in 1999. " * 20_000),
        (cutting(splitting(GPT4)), "a" + " " * 1_000_000 + "a"),
        (cutting(splitting(GPT4O)), "A" * 1_000_000),
        (replacing({"String": " "}, "\u2581"), "a b " * 200_000),
        (replacing({"Regex": " {2,}"}, " "), "a   b " * 200_000),
    ],
)  # fmt: skip
def test_long_texts_of_usual_tokenizers_are_encoded(tmp_path, changes, text):
    encode = damaged(tmp_path, **changes)
    assert (
        encode.whole([text])[0].tolist()
        == Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(text).ids
    )


def test_texts_that_grow_are_encoded_a_few_at_a_time(tmp_path, monkeypatch):
    changes = replacing({"String": "a"}, "a b " * 10)
    texts = [f"a {'b' * count} a" for count in range(60)]
    expected = ids(damaged(tmp_path, **changes), texts)
    monkeypatch.setattr("bertscore_onnx.text.tokenizer_json.MAX_ADDED", 200)
    encode = damaged(tmp_path, **changes)
    assert len(list(encode._encode._file._groups(texts, together=True))) > 5
    assert ids(encode, texts) == expected
