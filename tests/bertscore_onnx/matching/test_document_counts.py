"""Counts of parts of a corpus are those of the whole, and so are the scores."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx import BERTScorer, DocumentCounts, count_documents
from bertscore_onnx.errors import IdfError, InputError
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "house",
    "tree",
    "red",
    "blue",
    "sat",
    "ran",
    "runs",
    "is",
    "it",
    "on",
    ".",
    "!",
]
CORPUS = [" ".join(np.random.default_rng(seed).choice(WORDS, 1 + seed % 8)) for seed in range(200)]
DOCUMENTS = st.lists(st.integers(0, 11), max_size=6)
SOME = [[5, 2, 2], [], [7], [2, 9, 7, 5]]


def counted(*documents):
    return DocumentCounts.of_documents(
        [[np.array(ids, dtype=np.int64) for ids in documents]], 12, "words"
    )


def saved(counts, folder):
    counts.save(folder / "counts.json")
    return (folder / "counts.json").read_bytes()


@pytest.fixture(scope="module")
def whole(tiny_bundle):
    return count_documents(CORPUS, tiny_bundle)


def test_a_token_counts_once_for_each_document():
    counts = counted(*SOME)
    assert (counts.tokens.tolist(), counts.documents.tolist()) == ([2, 5, 7, 9], [2, 2, 2, 1])
    assert counts.num_documents == 4


@given(st.lists(st.tuples(st.integers(0, 6), DOCUMENTS)))
def test_parts_add_up_to_the_whole(documents):
    parts = [counted(*(ids for place, ids in documents if place == part)) for part in range(7)]
    assert (
        sum(parts)
        == sum(parts[::-1])
        == sum(parts[:3]) + sum(parts[3:])
        == counted(*(ids for _, ids in documents))
    )
    assert hash(sum(parts)) == hash(sum(parts[::-1]))


@pytest.mark.parametrize("seed", range(3))
def test_seven_parts_in_any_order_are_one_file_with_one_score(tiny_bundle, tmp_path, whole, seed):
    places = np.random.default_rng(seed).integers(7, size=len(CORPUS))
    parts = [
        [text for text, place in zip(CORPUS, places, strict=True) if place == part]
        for part in range(7)
    ]
    merged = sum(
        count_documents(parts[part], tiny_bundle)
        for part in np.random.default_rng(seed).permutation(7)
    )
    assert saved(merged, tmp_path) == saved(whole, tmp_path)
    candidates = CORPUS[::-1]
    with (
        BERTScorer(tiny_bundle, idf=True, device="cpu") as at_once,
        BERTScorer(
            tiny_bundle, idf=DocumentCounts.load(tmp_path / "counts.json"), device="cpu"
        ) as by_counts,
    ):
        for expected, found in zip(
            at_once.score(candidates, CORPUS), by_counts.score(candidates, CORPUS), strict=True
        ):
            assert expected.tobytes() == found.tobytes()


def test_each_of_several_references_is_a_document(tiny_bundle):
    assert count_documents(SEVERAL, tiny_bundle) == count_documents(
        [*itertools.chain(*SEVERAL)], tiny_bundle
    )


def test_no_documents_give_no_weights_and_only_counts_add_up(tiny_bundle, whole):
    none = count_documents([], tiny_bundle)
    assert none + whole == whole == sum([whole])
    with pytest.raises(IdfError, match="There is no text"):
        BERTScorer(tiny_bundle, idf=none, device="cpu")
    with pytest.raises(TypeError):
        whole + 1
    with pytest.raises(TypeError):
        1 + whole


@pytest.mark.parametrize(
    "settings", [{"max_length": 20}, {"long_text": "window"}, {"use_fast_tokenizer": True}]
)
def test_counts_of_another_tokenization_are_refused(request, tiny_bundle, whole, settings):
    bundle = (
        request.getfixturevalue("fast_bundle") if "use_fast_tokenizer" in settings else tiny_bundle
    )
    other = count_documents(CORPUS, bundle, **settings)
    with pytest.raises(IdfError, match="of the tokenization"):
        BERTScorer(tiny_bundle, idf=other, device="cpu")
    with pytest.raises(InputError, match="different tokenizations"):
        whole + other


def test_a_long_name_of_a_tokenization_is_shortened(tiny_bundle, whole):
    with pytest.raises(IdfError) as caught:
        BERTScorer(tiny_bundle, idf=replace(whole, tokenization="x" * 100_000), device="cpu")
    assert len(str(caught.value)) < 1_000


def test_counts_serve_other_layers_of_the_model(all_layers_bundle, whole):
    with BERTScorer(all_layers_bundle, all_layers=True, idf=whole, device="cpu") as scorer:
        assert np.isfinite(scorer.score(CANDIDATES, REFERENCES).F).all()


def test_a_file_holds_all_and_is_recognised_by_its_content(tmp_path, whole):
    whole.save(tmp_path / "counts")
    assert DocumentCounts.load(str(tmp_path / "counts")) == whole
    (tmp_path / "texts").write_text("a cat\nbertscore-onnx\n")
    indented = json.dumps(json.loads((tmp_path / "counts").read_bytes()), indent=2)
    (tmp_path / "indented").write_text(indented)
    found = [
        DocumentCounts.are_saved_in(tmp_path / name)
        for name in ("counts", "indented", "texts", "none", "")
    ]
    assert found == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tokens": [2, 1]}, "impossible"),
        ({"tokens": [1, 1]}, "impossible"),
        ({"tokens": [1]}, "impossible"),
        ({"documents": [0, 1]}, "impossible"),
        ({"documents": [4, 1]}, "impossible"),
        ({"num_documents": 2}, "impossible"),
        ({"num_documents": -1}, "num_documents"),
        ({"documents": [1.5, 1]}, "a number; expected a whole number"),
        ({"documents": [2**62, 1]}, "out of range"),
        ({"tokens": None}, "null"),
        ({"more": 1}, "more"),
        ({"format": "bertscore-onnx document counts 2"}, "format"),
    ],
    ids=str,
)
def test_a_damaged_file_is_refused(tmp_path, changes, told):
    content = json.loads(saved(counted([1], [1, 2], [1]), tmp_path))
    assert content["tokens"] == [1, 2]
    (tmp_path / "counts.json").write_text(json.dumps(content | changes))
    with pytest.raises(InputError, match=rf"counts\.json .*{told}"):
        DocumentCounts.load(tmp_path / "counts.json")


def test_a_file_that_was_cut_or_is_another_is_refused(tmp_path):
    whole = saved(counted(*SOME), tmp_path)
    for content in (
        *(whole[:length] for length in range(len(whole))),
        b"a cat\n",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{" * 5000,
    ):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(InputError, match="document counts"):
            DocumentCounts.load(tmp_path / "other")


def test_rows_of_arrow_add_up(whole, tiny_bundle):
    more = count_documents(REFERENCES, tiny_bundle)
    rows = pyarrow.concat_tables([whole.to_arrow(), more.to_arrow()])
    assert (
        DocumentCounts.from_arrow(rows.take(np.random.default_rng(1).permutation(len(rows))))
        == whole + more
    )


@pytest.mark.parametrize(("kept", "message"), [(4, "0 documents"), (0, "no row")])
def test_rows_without_the_number_of_documents_are_refused(kept, message):
    with pytest.raises(InputError, match=message):
        DocumentCounts.from_arrow(counted(*SOME).to_arrow().slice(0, kept))


def test_rows_of_two_tokenizations_are_refused():
    other = DocumentCounts.of_documents([], 12, "others").to_arrow()
    with pytest.raises(InputError, match="words, others"):
        DocumentCounts.from_arrow(pyarrow.concat_tables([counted(*SOME).to_arrow(), other]))
