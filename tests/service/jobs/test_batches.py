"""Scores and counts of single batches in all their forms, in this process."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow
import pytest

from bertscore_onnx import BERTScorer, DocumentCounts, Matching, count_documents
from bertscore_onnx.errors import BundleNotFoundError, InputError, InputTypeError
from bertscore_onnx_service import CountBatch, ScoreBatch
from tests.support.processes import run_python
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL

NEW = ["precision", "recall", "f1", "best_reference"]


pytestmark = pytest.mark.filterwarnings("ignore:.* longer than .* tokens and truncated:UserWarning")


@pytest.fixture(scope="module")
def table():
    return pyarrow.table(
        {"id": range(len(CANDIDATES)), "candidate": CANDIDATES, "reference": SEVERAL}
    )


@pytest.fixture(scope="module")
def expected(scorer):
    scores = scorer.score(CANDIDATES, SEVERAL)
    return [values.tolist() for values in (*scores, scores.best_reference)]


def columns_of(batch):
    return [np.asarray(batch[name]).tolist() for name in NEW]


FORMS = {
    "table": lambda table: table,
    "record batch": lambda table: table.to_batches()[0],
    "arrays": lambda table: {name: table[name].to_numpy() for name in table.column_names},
    "lists": lambda table: table.to_pydict(),
    "frame": lambda table: table.to_pandas(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_comes_back_in_its_form_with_its_scores(tiny_bundle, table, expected, form):
    batch = FORMS[form](table)
    scored = ScoreBatch(tiny_bundle)(batch)
    assert type(scored) is type(batch)
    assert list(scored.schema.names if hasattr(scored, "schema") else scored) == [
        *table.column_names,
        *NEW,
    ]
    assert np.asarray(scored["id"]).tolist() == list(range(len(CANDIDATES)))
    assert columns_of(scored) == expected


STRING, LARGE, VIEW = pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()


@pytest.mark.parametrize(
    ("of_candidates", "of_references"),
    [
        (LARGE, pyarrow.large_list(LARGE)),
        (pyarrow.dictionary(pyarrow.int32(), STRING), pyarrow.list_(STRING)),
        (VIEW, pyarrow.list_(VIEW)),
    ],
)
def test_texts_may_be_of_any_arrow_type(tiny_bundle, expected, of_candidates, of_references):
    columns = pyarrow.array(CANDIDATES, of_candidates), pyarrow.array(SEVERAL, of_references)
    assert (
        columns_of(ScoreBatch(tiny_bundle)(pyarrow.table(columns, ["candidate", "reference"])))
        == expected
    )


def test_a_reference_may_be_one_text(tiny_bundle, scorer):
    expected = scorer.score(CANDIDATES, REFERENCES)
    scored = ScoreBatch(tiny_bundle, "mt", "ref")(
        {"mt": np.array(CANDIDATES), "ref": np.array(REFERENCES)}
    )
    assert scored["f1"].tobytes() == expected.F.tobytes()


def test_arrow_metadata_gains_the_signature(tiny_bundle, scorer, table):
    scored = ScoreBatch(tiny_bundle, rescale_with_baseline=False)(
        table.replace_schema_metadata({"made": "by hand"})
    )
    assert scored.schema.metadata == {
        b"made": b"by hand",
        b"bertscore_onnx.signature": scorer.hash.encode(),
    }
    assert [scored.schema.field(name).type for name in NEW] == [
        *[pyarrow.float32()] * 3,
        pyarrow.int64(),
    ]


def test_scores_have_the_same_bits_however_rows_are_cut(tiny_bundle, table):
    rows = pyarrow.concat_tables([table.slice(i % len(CANDIDATES), 1) for i in range(100)])
    score = ScoreBatch(tiny_bundle)
    whole = score(rows)
    for seed in range(5):
        cuts = [0, *sorted(np.random.default_rng(seed).integers(0, 101, 12).tolist()), 100]
        parts = [rows.slice(start, stop - start) for start, stop in pairwise(cuts)]
        assert pyarrow.concat_tables(map(score, parts)).equals(whole)
        streamed = list(score.stream(parts))
        assert [len(part) for part in streamed] == [len(part) for part in parts]
        assert pyarrow.concat_tables(streamed).equals(whole)


@pytest.mark.parametrize("form", ["table", "record batch", "lists", "frame"])
def test_a_batch_without_rows_gets_the_columns(tiny_bundle, table, form):
    nothing = table.slice(0, 0)
    batch = (
        pyarrow.RecordBatch.from_pylist([], nothing.schema)
        if form == "record batch"
        else FORMS[form](nothing)
    )
    score = ScoreBatch(tiny_bundle)
    assert columns_of(score(batch)) == [[], [], [], []]
    assert list(score.stream([])) == []


def test_a_stream_gives_the_batches_before_the_wrong_one(tiny_bundle):
    batches = [
        {"candidate": ["a"] * n, "reference": ["a"] * (n - 1) + [last]}
        for n, last in [(2, "a"), (3, None)]
    ]
    stream = ScoreBatch(tiny_bundle).stream(batches, "partition 3")
    assert next(stream)["f1"].tolist() == pytest.approx([1, 1])
    with pytest.raises(InputError, match=r"^partition 3, row 4: .*'reference'"):
        next(stream)


def test_settings_are_checked_before_anything_is_loaded(table):
    with pytest.raises(InputError, match="'ignore'"):
        ScoreBatch("nowhere", errors="ignore")
    score = ScoreBatch("no/such/bundle")
    with pytest.raises(BundleNotFoundError):
        score(table)


def test_settings_are_those_of_a_scorer(tiny_bundle, table):
    references = [text for texts in SEVERAL for text in texts]
    counts = count_documents(SEVERAL, tiny_bundle, max_length=6)
    for idf, expected_idf in (
        (counts, True),
        (dict.fromkeys(range(30), 0.5), dict.fromkeys(range(30), 0.5)),
    ):
        with BERTScorer(tiny_bundle, idf=expected_idf, max_length=6) as scorer:
            expected = scorer.score(CANDIDATES, SEVERAL).F
        assert (
            np.array(ScoreBatch(tiny_bundle, idf=idf, max_length=6)(table)["f1"]).tobytes()
            == expected.tobytes()
        )
    from_sentences = ScoreBatch(tiny_bundle, idf=True, idf_sents=iter(references), max_length=6)
    assert from_sentences(table)["f1"].equals(
        ScoreBatch(tiny_bundle, idf=counts, max_length=6)(table)["f1"]
    )


def test_copies_are_equal_and_as_small_as_their_settings(tiny_bundle, table):
    score = ScoreBatch(tiny_bundle, names=("p", "r", "f", "cut"), errors="null", max_length=6)
    before = pickle.dumps(score)
    score(table)
    assert pickle.dumps(score) == before
    assert len(before) < 1000
    copy = pickle.loads(before)
    assert (copy, hash(copy), repr(copy)) == (score, hash(score), repr(score))
    assert copy(table).equals(score(table))
    assert score != ScoreBatch(tiny_bundle, errors="null", max_length=6)


def test_a_process_loads_one_scorer_for_all_copies(tiny_bundle, table, monkeypatch):
    loaded = []

    class Counted(BERTScorer):
        def __init__(self, *arguments, **settings):
            loaded.append(arguments)
            super().__init__(*arguments, **settings)

    monkeypatch.setattr("bertscore_onnx.functional.BERTScorer", Counted)
    score = ScoreBatch(str(tiny_bundle), max_length=9)
    for one in (
        score,
        pickle.loads(pickle.dumps(score)),
        ScoreBatch(tiny_bundle, "candidate", max_length=9),
    ):
        one(table)
    assert len(loaded) == 1


def test_it_needs_no_engine_and_no_pyarrow_for_arrays(tiny_bundle):
    program = """
import sys
sys.modules.update(dict.fromkeys(("pandas", "pyarrow", "pyspark", "ray")))
from bertscore_onnx_service import ScoreBatch
print(ScoreBatch(sys.argv[1])({"candidate": ["a cat"], "reference": ["a cat"]})["f1"].round(3))
"""
    done = run_python(program, tiny_bundle)
    assert (done.stdout, done.stderr) == ("[1.]\n", "")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_rows_of_batches_add_up_to_the_counts_of_the_whole(tiny_bundle, size):
    count = pickle.loads(pickle.dumps(CountBatch(tiny_bundle, "ref")))
    tables = [
        count({"ref": SEVERAL[start : start + size]}) for start in range(0, len(SEVERAL), size)
    ]
    rows = (
        pyarrow.concat_tables(tables)
        .group_by(["token", "tokenization"])
        .aggregate([("documents", "sum")])
    )
    rows = rows.rename_columns({"documents_sum": "documents"})
    assert DocumentCounts.from_arrow(rows) == count_documents(SEVERAL, tiny_bundle)


def test_a_batch_without_rows_counts_no_documents(tiny_bundle):
    counts = CountBatch(tiny_bundle).count(
        pyarrow.table({"reference": pyarrow.array([], pyarrow.string())})
    )
    assert (counts.num_documents, len(counts.tokens)) == (0, 0)
    one = CountBatch(tiny_bundle).count({"reference": ["the cat"]})
    assert counts + one == one == count_documents(["the cat"], tiny_bundle)


def test_the_maximum_length_is_a_setting(tiny_bundle):
    texts = ["the cat sat on the mat. a dog ran"]
    cut = CountBatch(tiny_bundle, max_length=4).count({"reference": texts})
    assert (
        cut
        == count_documents(texts, tiny_bundle, max_length=4)
        != count_documents(texts, tiny_bundle)
    )


def test_a_row_that_holds_no_text_is_named_or_left_out(tiny_bundle):
    batch = pyarrow.table({"reference": ["the cat", None, "a dog"]})
    with pytest.raises(InputError, match=r"row 1: .*'reference'"):
        CountBatch(tiny_bundle)(batch)
    counts = CountBatch(tiny_bundle, errors="null").count(batch)
    assert counts == count_documents(["the cat", "a dog"], tiny_bundle)


def test_columns_and_settings_that_do_not_exist_are_refused(tiny_bundle):
    with pytest.raises(InputError, match="'ignore'"):
        CountBatch(tiny_bundle, errors="ignore")
    with pytest.raises(InputError, match="no column 'reference'"):
        CountBatch(tiny_bundle)({"ref": ["a"]})
    with pytest.raises(InputTypeError, match="'nthreads'"):
        CountBatch(tiny_bundle, nthreads=1)


CONTEXTS = [["a tree", "is it"], None, []]


@pytest.mark.filterwarnings("ignore:.*an empty context")
def test_a_column_of_contexts_counts_and_is_in_the_signature(tiny_bundle):
    batch = {"candidate": CANDIDATES, "reference": SEVERAL, "before": CONTEXTS}
    with BERTScorer(tiny_bundle, matching="doc-bert-score") as scorer:
        expected = scorer.score(CANDIDATES, SEVERAL, contexts=CONTEXTS)
        framed = scorer.score_frame(batch, context="before")
    score = pickle.loads(
        pickle.dumps(ScoreBatch(tiny_bundle, context="before", matching="doc-bert-score"))
    )
    assert score == ScoreBatch(
        tiny_bundle, context="before", matching=Matching.parse("doc-bert-score")
    )
    assert score != ScoreBatch(tiny_bundle, matching="doc-bert-score")
    scored = score(batch)
    # only the rows have their number
    assert score.signature == replace(expected.signature, references=None)
    for found in (scored, framed):
        assert found["f1"].tolist() == expected.F.tolist()
    nulls = ScoreBatch(tiny_bundle, context="before", errors="null")(
        {**batch, "before": ["it", None, 3]}
    )
    assert [value is None for value in nulls["f1"]] == [False, False, True]
    assert "'before' holds a number" in nulls["error"][2]
    with pytest.raises(InputError, match="'beforehand'"):
        ScoreBatch(tiny_bundle, context="beforehand")(batch)


def test_columns_of_usual_names_are_found_and_counted(table, tiny_bundle, expected):
    named = table.rename_columns(["id", "prediction", "target"])
    blank = named.append_column("target_2", pyarrow.nulls(len(table), pyarrow.string()))
    scored = ScoreBatch(tiny_bundle)(blank)
    assert columns_of(scored) == expected
    assert b"references:2" in scored.schema.metadata[b"bertscore_onnx.signature"]
    counts = CountBatch(tiny_bundle).count(blank)
    assert counts.num_documents == sum(map(len, SEVERAL))
