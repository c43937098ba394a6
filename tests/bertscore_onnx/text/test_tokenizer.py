import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from string import ascii_lowercase
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from bertscore_onnx.errors import TokenizerError
from bertscore_onnx.text.normalizers import Lowercase
from bertscore_onnx.text.spec import SpecialToken, TokenizerSpec, tokenizer_file
from bertscore_onnx.text.tokenizer import TextTokenizer, WordEncoder, is_word_based

VOCAB = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "b": 4, "c": 5}
WORD = SpecialToken(content="b", id=5, single_word=True)
SPEC = TokenizerSpec(
    normalizers=[],
    special_tokens=[SpecialToken(content="[SEP]", id=2)],
    pre_tokenizers=[],
    sentencepiece=None,
    vocab_size=None,
    unknown_id=0,
    prefix_ids=[1],
    suffix_ids=[2],
    suffix_once=False,
)


def saved(folder):
    tokenizer = Tokenizer(models.WordLevel(VOCAB, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", 1)]
    )
    for name in ("tokenizer.json", "tokenizer.slow.json"):
        tokenizer.save(str(folder / name))
    return folder


def tokenizer(folder, spec=SPEC, *, max_length=None):
    return TextTokenizer(saved(folder), spec=spec, max_length=max_length, empty_ids=[1, 2])


def ids(encode, texts):
    return [found.tolist() for found in encode(texts)[0]]


modes = pytest.mark.parametrize("spec", [None, SPEC], ids=["fast", "slow"])


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        pytest.param(" a b ", {}, [1, 3, 4, 2], id="special tokens around a text"),
        pytest.param("a[SEP]b", {}, [1, 3, 2, 4, 2], id="literal special tokens"),
        pytest.param("a[SEP]", {}, [1, 3, 2, 2], id="a last special token is repeated"),
        pytest.param("a[SEP]", {"suffix_once": True}, [1, 3, 2], id="or not"),
        pytest.param("a", {"suffix_once": True}, [1, 3, 2], id="but is there"),
        pytest.param(
            "a b c", {"vocab_size": 4}, [1, 3, 0, 0, 2], id="ids beyond the model's are unknown"
        ),
        pytest.param(
            "A [SEP] B",
            {"normalizers": [Lowercase(never_lower=["[SEP]"])]},
            [1, 3, 2, 4, 2],
            id="steps first",
        ),
        pytest.param(" \n", {}, [1, 2], id="an empty text"),
        pytest.param("a b", {"special_tokens": []}, [1, 3, 4, 2], id="no special tokens in a text"),
        pytest.param(
            "a\tb b", {"special_tokens": [WORD]}, [1, 3, 4, 5, 2], id="special between spaces alone"
        ),
        pytest.param(
            "a \ud800", {}, [1, 3, 0, 2], id="a lone surrogate is a replacement character"
        ),
    ],
)
def test_a_text_becomes_ids(tmp_path, text, changes, expected):
    assert ids(tokenizer(tmp_path, msgspec.structs.replace(SPEC, **changes)), [text]) == [expected]


def test_a_long_text_keeps_its_special_tokens(tmp_path):
    assert ids(tokenizer(tmp_path, max_length=4), ["a b c"]) == [[1, 3, 4, 2]]


@pytest.mark.parametrize("in_parallel", [False, True])
@modes
def test_the_number_of_texts_does_not_change_their_ids(tmp_path, spec, in_parallel):
    encode = TextTokenizer(
        saved(tmp_path), spec=spec, max_length=5, empty_ids=[1], in_parallel=in_parallel
    )
    texts = ["a", "b c", "", "c [SEP] a", "a b c a b c", "b"]
    expected = [one for text in texts for one in ids(encode, [text])]
    for count in range(len(texts) + 1):
        assert ids(encode, texts[:count]) == expected[:count]


def test_without_a_spec_the_file_decides_all(tmp_path):
    assert ids(tokenizer(tmp_path, None, max_length=2), ["a b", ""]) == [[1, 3], [1, 2]]


def test_equally_good_cuts_are_decided_by_scores_of_the_file(tmp_path):
    scores = [float(np.float32(-3.1 * 1.07**place)) for place in range(26)]
    pairs = [
        (one * count, score * count)
        for one, score in zip(ascii_lowercase, scores, strict=True)
        for count in (1, 2)
    ]
    original = Tokenizer(models.Unigram([("<unk>", 0.0), *pairs], 0))
    original.save(str(tmp_path / "tokenizer.json"))
    texts = [one * count for one in ascii_lowercase for count in range(2, 9)]
    encode = TextTokenizer(tmp_path, spec=None, max_length=None, empty_ids=[0])
    assert ids(encode, texts) == [original.encode(text).ids for text in texts]


@modes
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path, spec, monkeypatch):
    def load():
        return TextTokenizer(tmp_path, spec=spec, max_length=8, empty_ids=[1])

    file = tmp_path / tokenizer_file(spec)
    file.write_text("{}")
    with pytest.raises(TokenizerError, match="tokenizer"):
        load()
    monkeypatch.setattr("bertscore_onnx.text.tokenizer_json.MAX_FILE_BYTES", 10)
    file.write_bytes(b"x" * 11)
    with pytest.raises(TokenizerError, match="11 bytes"):
        load()


@modes
def test_without_a_maximum_of_the_model_memory_sets_one(tmp_path, spec):
    encode = tokenizer(tmp_path, spec)
    found, is_truncated = encode(["a " * 9000, "a " * 8000])
    assert encode.max_length == len(found[0]) == 8192
    assert len(found[1]) < 8192
    assert is_truncated == [True, False]


@modes
def test_truncated_texts_are_named(tmp_path, spec):
    special = 2 if spec else 1
    _, is_truncated = tokenizer(tmp_path, spec, max_length=special + 2)(
        ["a", "a b", "a b c", "", "c b a a b"]
    )
    assert is_truncated == [False, False, True, False, True]


@modes
def test_threads_may_tokenise_side_by_side(tmp_path, spec):
    """The package refuses to change a setting while another thread encodes, so none may change
    after construction.
    """
    encode = tokenizer(tmp_path, spec, max_length=5)
    texts = ["a b c " * length for length in range(50)]
    expected = ids(encode, texts)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: ids(encode, texts), range(40))) == [expected] * 40


def damaged(folder, **changes):
    """Return the tokenizer in the fast mode, with parts of its file replaced."""
    file = saved(folder) / "tokenizer.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **changes}))
    return TextTokenizer(folder, spec=None, max_length=None, empty_ids=[1, 2])


def test_a_tokenizer_that_fails_on_a_text_raises_an_error(tmp_path):
    encode = damaged(tmp_path, model={"type": "WordLevel", "vocab": {"a": 3}, "unk_token": "[UNK]"})
    assert ids(encode, ["a"]) == [[1, 3]]
    with pytest.raises(TokenizerError, match="fails on a text"):
        encode(["b"])


def test_a_text_without_ids_counts_as_empty(tmp_path):
    encode = damaged(
        tmp_path, post_processor=None, model={"type": "BPE", "vocab": {"a": 3}, "merges": []}
    )
    assert ids(encode, ["é", "a"]) == [[1, 2], [3]]


def wordpiece():
    pieces = ["[UNK]", *"abc", *(f"##{piece}" for piece in "abc"), "ab", "##ca"]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(
        models.WordPiece(vocab=vocab, unk_token=pieces[0], max_input_chars_per_word=100)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def word_bpe():
    pieces = ["<unk>", *"abc", *(f"{piece}</w>" for piece in "abc"), "ab", "ab</w>"]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    merges = [("a", "b"), ("a", "b</w>")]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token=pieces[0], end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    return tokenizer


def plain_ids(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


@pytest.fixture(params=[wordpiece, word_bpe])
def word_tokenizer(request):
    return request.param()


def test_ids_are_those_of_the_tokenizer(word_tokenizer):
    encode, chance = WordEncoder(word_tokenizer), np.random.default_rng(0)
    texts = ["", " ", "a", "  ab  c ", "a\tb", "x", "abx xab", "a" * 99, "a" * 101 + " b"]
    texts += ["".join(chance.choice(list("abcx  "), 200)) for _ in range(50)]
    for text in texts + texts:
        found = encode(text)
        assert found == plain_ids(word_tokenizer, text), text
        found.clear()  # the list is the caller's own


def test_more_words_than_are_cached_do_no_harm(word_tokenizer, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.text.tokenizer.CACHE_SIZE", 500)
    encode = WordEncoder(word_tokenizer)
    text = " ".join(map("".join, product("abc", repeat=6)))
    assert len(text.split()) == 729
    for _ in range(2):
        assert encode(text) == plain_ids(word_tokenizer, text)


def test_words_end_where_python_says_so():
    tokenizer = wordpiece()
    assert (
        WordEncoder(tokenizer)("a\x1cb")
        == plain_ids(tokenizer, "a b")
        != plain_ids(tokenizer, "a\x1cb")
    )


def test_long_words_are_not_cached():
    encoded = []
    fake = SimpleNamespace(
        pre_tokenizer=pre_tokenizers.WhitespaceSplit(),
        model=SimpleNamespace(tokenize=lambda word: encoded.append(word) or []),
        encode_batch_fast=lambda words, **options: (
            encoded.extend(words) or [SimpleNamespace(ids=[])]
        ),
    )
    encode = WordEncoder(fake)
    encode(f"a {'b' * 33} a {'b' * 33}")
    assert encoded == ["a", "b" * 33, "b" * 33]


@pytest.mark.parametrize(
    "change",
    [
        lambda one: setattr(one, "normalizer", normalizers.Lowercase()),
        lambda one: setattr(one, "pre_tokenizer", pre_tokenizers.ByteLevel()),
        lambda one: one.add_tokens([AddedToken("a b")]),
    ],
    ids=["normalizer", "pre-tokenizer", "added token"],
)
def test_a_tokenizer_that_looks_beyond_words_is_not_word_based(change):
    changed = wordpiece()
    assert is_word_based(changed)
    assert is_word_based(word_bpe())
    change(changed)
    assert not is_word_based(changed)
