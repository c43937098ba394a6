"""`BERTScorer.score_frame`: each kind of frame comes back with its columns and its scores."""

import numpy as np
import pandas as pd
import pytest

from bertscore_onnx import BERTScorer, count_documents
from bertscore_onnx.errors import InputError

COLUMNS = {
    "id": ["007", "01", "x"],
    "mt": ["the cat sat", 'a "red" house', "it"],
    "gold": ["a cat sat", "the blue house", "a"],
}


def as_arrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


def as_dataset(columns):
    return pytest.importorskip("datasets").Dataset.from_dict(columns)


def as_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def columns_of(frame):
    """Return the columns of a frame of any kind as lists, in order."""
    if isinstance(frame, pd.DataFrame):
        return {name: frame[name].tolist() for name in frame}
    if hasattr(frame, "to_pydict"):
        return frame.to_pydict()
    if isinstance(frame, dict):
        return {name: list(np.asarray(values).tolist()) for name, values in frame.items()}
    return frame.to_dict() if hasattr(frame, "features") else frame.to_dict(as_series=False)


@pytest.fixture
def scores(scorer):
    return scorer.score(COLUMNS["mt"], COLUMNS["gold"])


KINDS = pytest.mark.parametrize("make", [pd.DataFrame, dict, as_arrow, as_dataset, as_polars])


@KINDS
def test_the_frame_comes_back_with_its_columns_and_scores(scorer, scores, make):
    frame = make(COLUMNS)
    scored = scorer.score_frame(frame, candidate="mt", reference="gold")
    assert type(scored) is type(frame)
    assert columns_of(frame) == COLUMNS
    expected = COLUMNS | dict(
        zip(["precision", "recall", "f1"], map(np.ndarray.tolist, scores), strict=True)
    )
    assert columns_of(scored) == expected
    assert list(columns_of(scored)) == list(expected)


@KINDS
def test_rows_without_scores_have_nulls_and_a_reason(scorer, scores, make):
    columns = COLUMNS | {"mt": [COLUMNS["mt"][0], None, COLUMNS["mt"][2]]}
    with pytest.raises(InputError, match=r"row 1: .*null"):
        scorer.score_frame(make(columns), "mt", "gold")
    scored = columns_of(scorer.score_frame(make(columns), "mt", "gold", errors="null"))
    f1 = [None if pd.isna(value) else value for value in scored["f1"]]
    assert f1 == [scores.F[0], None, scores.F[2]]
    assert scored["error"][1].startswith("the column 'mt' holds null")


FOUR_ROWS = {
    "mt": ["the cat sat", 'a "red" house', "it", "a dog"],
    "gold": ["a cat sat", "the blue house", ["a", "it"], "the dog"],
    "first": ["the cat", "a house", "a dog", "the dog sat"],
    "before": ["a dog", None, "the house", ["the cat", "it sat"]],
}


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        ({"idf": True}, {"reference": "gold"}),
        ({"idf": True}, {"reference": ["gold", "first"]}),
        ({"idf": True}, {"reference": "gold", "context": "before"}),
    ],
)
def test_a_missing_candidate_does_not_change_the_scores_of_other_rows(
    tiny_bundle, settings, columns
):
    whole = pd.DataFrame(FOUR_ROWS)
    gap = whole.assign(mt=["the cat sat", None, "it", float("nan")])
    with BERTScorer(tiny_bundle, device="cpu", **settings) as scorer:
        expected = scorer.score_frame(whole, "mt", **columns)
        scored = scorer.score_frame(gap, "mt", **columns, errors="null")
        alone = scorer.score_frame(gap.dropna(subset="mt"), "mt", **columns)
    assert scored["f1"].isna().tolist() == [False, True, False, True]
    for name in ("precision", "recall", "f1"):
        assert scored[name].dropna().tolist() == pytest.approx(
            expected[name][[0, 2]].tolist(), abs=1e-6
        )
    assert abs(alone["f1"] - expected["f1"][[0, 2]]).max() > 0.001  # the other references matter


def test_missing_references_count_nowhere(tiny_bundle):
    frame = pd.DataFrame(
        {"candidate": ["the cat", None, "it"], "reference": ["a cat", "the dog", None]}
    )
    counts = count_documents(["a cat", "the dog"], tiny_bundle)
    with (
        BERTScorer(tiny_bundle, device="cpu", idf=True) as scorer,
        scorer.with_idf(counts) as other,
    ):
        scored = scorer.score_frame(frame, errors="null")
        assert scored["f1"][0] == other.score(["the cat"], ["a cat"]).F[0]
        assert scorer.score_frame(frame[1:], errors="null")["f1"].isna().all()


@KINDS
def test_several_references_have_a_best_one(scorer, make):
    columns = COLUMNS | {"other": ["the cat sat", "house", "it"]}
    lists = COLUMNS | {
        "gold": [list(texts) for texts in zip(columns["gold"], columns["other"], strict=True)]
    }
    by_columns = columns_of(
        scorer.score_frame(make(columns), "mt", ["gold", "other"], names=("P", "R", "F"))
    )
    assert list(by_columns)[-4:] == ["P", "R", "F", "best_reference"]
    expected = scorer.score(lists["mt"], lists["gold"])
    assert by_columns["best_reference"] == expected.best_reference.tolist()
    by_lists = columns_of(scorer.score_frame(make(lists), "mt", "gold"))
    assert by_lists["f1"] == by_columns["F"] == expected.F.tolist()


@KINDS
@pytest.mark.parametrize("errors", ["raise", "null"])
@pytest.mark.filterwarnings("ignore:.* longer than .* truncated:UserWarning")
def test_a_fourth_name_adds_a_column_of_truncated_texts(scorer, make, errors):
    columns = COLUMNS | {
        "mt": ["the cat sat", None if errors == "null" else "a", "a cat ran " * 20]
    }
    names = ("p", "r", "f", "cut")
    scored = columns_of(scorer.score_frame(make(columns), "mt", "gold", names=names, errors=errors))
    assert list(scored) == [*COLUMNS, *names, "unknown", *["error"] * (errors == "null")]
    cut = [None if pd.isna(value) else value for value in scored["cut"]]
    assert cut == [False, None if errors == "null" else False, True]


def test_every_layer_has_one_column_of_truncated_texts(all_layers_scorer):
    names = ("p", "r", "f", "cut")
    for make in (pd.DataFrame, as_arrow, as_polars):
        scored = columns_of(all_layers_scorer.score_frame(make(COLUMNS), "mt", "gold", names=names))
        assert scored["cut"] == [False] * 3
        assert len(scored["f"][0]) == len(all_layers_scorer.manifest.layers)
    nothing = all_layers_scorer.score_frame(
        {name: [] for name in COLUMNS}, "mt", "gold", names=names
    )
    assert (nothing["cut"].shape, nothing["f"].shape) == ((0,), (0, 0))


def test_the_index_types_and_order_of_pandas_stay(scorer, scores):
    frame = pd.DataFrame(COLUMNS, index=["c", "a", "b"]).assign(
        day=pd.Timestamp("2026-01-01"), kind="x"
    )
    frame["kind"] = frame["kind"].astype("category")
    scored = scorer.score_frame(frame, candidate="mt", reference="gold")
    pd.testing.assert_frame_equal(scored[[*frame]], frame)
    assert scored.loc["a", "f1"] == scores.F[1]
    assert scored.dtypes["f1"] == np.float32


def test_all_layers_are_lists(all_layers_scorer):
    scored = all_layers_scorer.score_frame(pd.DataFrame(COLUMNS), "mt", "gold")
    assert np.allclose(
        np.stack(scored["f1"]).T, all_layers_scorer.score(COLUMNS["mt"], COLUMNS["gold"]).F
    )
