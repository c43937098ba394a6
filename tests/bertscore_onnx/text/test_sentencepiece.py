import io
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from bertscore_onnx.errors import TokenizerError
from bertscore_onnx.text.spec import SentencePieceSpec, TokenizerSpec
from bertscore_onnx.text.tokenizer import TextTokenizer
from tests.support.processes import in_forked_child

PIECES = [("▁", -2.0), ("a", -3.0), ("b", -3.0), ("ab", -4.0), ("▁a", -4.5), ("1,", -1.0), (",", -2.0), ("1", -2.5),
          ("▁1", -3.5), ("x", -9.0)]  # fmt: skip
"""The pieces from number 1 on; number 0 is the unknown one."""

SPEC = TokenizerSpec(
    normalizers=[],
    special_tokens=[],
    pre_tokenizers=[],
    sentencepiece=SentencePieceSpec(
        id_runs=[(0, 0)], split_number_comma=False, split_punctuation=False
    ),
    vocab_size=None,
    unknown_id=0,
    prefix_ids=[],
    suffix_ids=[],
    suffix_once=False,
)


def tokenizer(folder, **changes):
    model = vars(sentencepiece_model_pb2)["ModelProto"]()
    model.pieces.add(piece="<unk>", score=0.0, type=2)
    for piece, score in PIECES:
        model.pieces.add(piece=piece, score=score)
    (folder / "spiece.model").write_bytes(model.SerializeToString())
    assert SPEC.sentencepiece is not None
    spec = msgspec.structs.replace(
        SPEC, sentencepiece=msgspec.structs.replace(SPEC.sentencepiece, **changes)
    )
    return TextTokenizer(folder, spec=spec, max_length=None, empty_ids=[0])


def ids(encode, *texts):
    return [found.tolist() for found in encode(texts)[0]]


@pytest.mark.parametrize(
    ("changes", "texts", "expected"),
    [
        ({}, ["ab", "a  b", "xé!b", "a1,"], [[1, 4], [5, 1, 3], [1, 10, 0, 3], [5, 6]]),
        ({"id_runs": [(0, 3), (1, 0), (3, 12)]}, ["ab a é"], [[0, 13, 14, 0, 3]]),
        ({"split_number_comma": True}, ["a1,", "ab"], [[5, 8, 7], [1, 4]]),
        ({"split_punctuation": True}, ["a,b", "ab"], [[5, 1, 7, 1, 3], [1, 4]]),
    ],
    ids=[
        "pieces",
        "ids of the model",
        "a comma leaves its number",
        "punctuation marks stand alone",
    ],
)
def test_texts_are_encoded_by_the_model(tmp_path, changes, texts, expected):
    assert ids(tokenizer(tmp_path, **changes), *texts) == expected


@pytest.mark.parametrize("changes", [{}, {"split_number_comma": True}, {"split_punctuation": True}])
def test_the_number_of_texts_does_not_change_their_ids(tmp_path, changes):
    encode = tokenizer(tmp_path, **changes)
    texts = ["ab", "", "a1,b,", "x!" * 40, "1,1,", "é"] * 4
    assert ids(encode, *texts) == [one for text in texts for one in ids(encode, text)]


def test_threads_may_share_a_tokenizer(tmp_path):
    encode = tokenizer(tmp_path, split_number_comma=True)
    texts = ["ab1, x" * length for length in range(50)]
    expected = ids(encode, *texts)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda _: ids(encode, *texts), range(40))) == [expected] * 40


def test_a_tokenizer_works_in_a_forked_child(tmp_path):
    encode = tokenizer(tmp_path)
    texts = ["ab x"] * 20
    expected = ids(encode, *texts)
    assert in_forked_child(lambda: ids(encode, *texts)) == expected


def lengthening(folder, times):
    """Return the tokenizer of a model that replaces a by many b."""
    rules = folder / "rules.tsv"
    rules.write_text(f"61\t{' '.join(['62'] * times)}\n")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat", "bb cat"] * 9),
        model_writer=model,
        vocab_size=14,
        hard_vocab_limit=False,
        normalization_rule_tsv=str(rules),
        minloglevel=3,
    )
    (folder / "spiece.model").write_bytes(model.getvalue())
    return TextTokenizer(folder, spec=SPEC, max_length=None, empty_ids=[0])


def test_a_model_that_lengthens_a_text_too_much_is_refused(tmp_path):
    encode = lengthening(tmp_path, 60)
    assert len(encode.whole(["ta" * 8_000])[0]) > 8_000
    with pytest.raises(
        TokenizerError, match="of 40,000 characters: its normalizers add more than 1,000,000 bytes"
    ):
        encode(["ta" * 20_000])
    with pytest.raises(TokenizerError, match="replacement of 1,001 bytes"):
        lengthening(tmp_path, 1_001)


def test_the_marks_of_spaces_do_not_lengthen_a_text(tmp_path):
    assert len(lengthening(tmp_path, 1).whole(["b " * 600_000])[0]) >= 600_000


@pytest.mark.parametrize("content", [None, b"", b"no model", b"\x0a\xff\xff\xff\xff\x0f"])
def test_a_missing_file_or_one_that_is_no_model_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "spiece.model").write_bytes(content)
    with pytest.raises(TokenizerError, match="not a tokenizer"):
        TextTokenizer(tmp_path, spec=SPEC, max_length=None, empty_ids=[0])


def test_the_description_names_the_version(tmp_path):
    assert tokenizer(tmp_path).description == f"slow+sentencepiece-{sentencepiece.__version__}"


@pytest.mark.parametrize(
    "id_runs",
    [
        [(0, 0), (12, 100)],
        [(0, 0), (10**9, 1)],
        [(1, 0)],
        [(0, 0), (5, 9), (3, 20)],
        [(0, 0), (5, 1), (3, 2)],
    ],
)
def test_a_model_of_another_vocabulary_is_refused(tmp_path, id_runs):
    with pytest.raises(TokenizerError, match="11 pieces"):
        tokenizer(tmp_path, id_runs=id_runs)
