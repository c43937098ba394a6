"""The JSON of a comparison is what its schema in the documentation describes."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from bertscore_onnx_evaluation import compare

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs" / "reference" / "comparison.schema.json").read_text(
        encoding="utf-8"
    )
)
SCORES = np.random.default_rng(0).normal(size=(3, 40))
SYSTEMS = dict(zip(("base", "a", "b"), SCORES, strict=True))
TEXTS = {"base": ["a cat", "a dog"] * 15, "other": ["the cat", "a dog"] * 15}


def rows(missing=0):
    pandas = pytest.importorskip("pandas")
    table = [
        (system, segment, float(score))
        for system, of in SYSTEMS.items()
        for segment, score in enumerate(of)
    ]
    columns = zip(*table[missing:], strict=True)
    return pandas.DataFrame(dict(zip(("system", "segment", "score"), columns, strict=True)))


@pytest.mark.parametrize(
    "found",
    [
        lambda: compare(scores=SYSTEMS, all_pairs=True),
        lambda: compare(scores=SYSTEMS, margin=0.5, score_range=(-9, 9)),
        lambda: compare(scores=SYSTEMS, documents=list("abcdefgh") * 5),
        lambda: compare(scores=rows(missing=3), missing="drop", num_resamples=50),
        lambda: compare(scores={name: [of, of + 0.1] for name, of in SYSTEMS.items()}),
        lambda: compare(
            scores=SYSTEMS, by=["news"] * 25 + ["talks"] * 15, margin=0.5, score_range=(-9, 9)
        ),
        lambda: compare(TEXTS, ["the cat", "the dog"] * 15, metrics=["chrf", "ter"]),
        lambda: compare(scores={"a": SYSTEMS["a"]}, by=["news"] * 25 + ["talks"] * 15),
    ],
    ids=["pairs", "margin", "documents", "dropped", "runs", "groups", "texts", "single"],
)
def test_every_comparison_is_as_the_schema_describes(found):
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(found().to_json()))


def test_the_schema_is_a_schema_that_allows_no_other_key():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    record = json.loads(compare(scores=SYSTEMS).to_json())
    record["systems"][1]["metrics"]["score"]["another"] = 1
    with pytest.raises(jsonschema.ValidationError, match="another"):
        jsonschema.Draft202012Validator(SCHEMA).validate(record)
