from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from bertscore_onnx.text.tokenizer import CACHE_SIZE, WordEncoder, has_words


def wordpiece() -> Tokenizer:
    pieces = ["[UNK]", *"abc", *(f"##{piece}" for piece in "abc"), "ab", "##ca"]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocab, unk_token=pieces[0], max_input_chars_per_word=100))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def word_bpe() -> Tokenizer:
    pieces = ["<unk>", *"abc", *(f"{piece}</w>" for piece in "abc"), "ab", "ab</w>"]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    merges = [("a", "b"), ("a", "b</w>")]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token=pieces[0], end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    return tokenizer


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return found


@pytest.fixture(params=[wordpiece, word_bpe])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    made: Tokenizer = request.param()
    return made


def test_ids_are_those_of_the_tokenizer(tokenizer: Tokenizer) -> None:
    encode, chance = WordEncoder(tokenizer), np.random.default_rng(0)
    texts = ["", " ", "a", "  ab  c ", "a\tb", "x", "abx xab", "a" * 99, "a" * 101 + " b"]
    texts += ["".join(chance.choice(list("abcx  "), 200)) for _ in range(50)]
    for text in texts + texts:
        assert encode(text) == ids(tokenizer, text), text


@pytest.mark.slow
def test_more_words_than_are_cached_do_no_harm(tokenizer: Tokenizer) -> None:
    encode = WordEncoder(tokenizer)
    text = " ".join(map("".join, product("abc", repeat=10)))
    assert len(text.split()) > CACHE_SIZE
    for _ in range(2):
        assert encode(text) == ids(tokenizer, text)


def test_words_end_where_python_says_so() -> None:
    tokenizer = wordpiece()
    assert WordEncoder(tokenizer)("a\x1cb") == ids(tokenizer, "a b") != ids(tokenizer, "a\x1cb")


def test_the_ids_of_a_text_are_the_callers_own() -> None:
    encode = WordEncoder(wordpiece())
    encode("ab c").clear()
    assert encode("ab c") == ids(wordpiece(), "ab c")


def test_long_words_are_not_cached() -> None:
    encoded = []
    fake = SimpleNamespace(
        pre_tokenizer=pre_tokenizers.WhitespaceSplit(),
        model=SimpleNamespace(tokenize=lambda word: encoded.append(word) or []),
        encode_batch_fast=lambda words, **options: encoded.extend(words) or [SimpleNamespace(ids=[])],
    )
    encode = WordEncoder(fake)
    encode(f"a {'b' * 33} a {'b' * 33}")
    assert encoded == ["a", "b" * 33, "b" * 33]


def test_what_sees_more_than_a_word_is_told_apart() -> None:
    assert has_words(wordpiece())
    assert has_words(word_bpe())

    changed = wordpiece()
    changed.normalizer = normalizers.Lowercase()
    assert not has_words(changed)

    changed = wordpiece()
    changed.pre_tokenizer = pre_tokenizers.ByteLevel()
    assert not has_words(changed)

    changed = wordpiece()
    changed.add_tokens([AddedToken("a b")])
    assert not has_words(changed)
