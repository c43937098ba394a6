"""Ray and Spark give the rows that one machine gives."""

import pyarrow as pa
import pytest

from bertscore_onnx_service import CountBatch, ScoreBatch
from bertscore_onnx_service.jobs.ray import score_dataset
from bertscore_onnx_service.jobs.spark import score_dataframe
from tests.service.jobs.conftest import ENGINES, texts

on_each_engine = pytest.mark.parametrize("engine", ENGINES, indirect=True)

# The rows of a dataset or a frame, in this process and on an engine.

CANDIDATES, REFERENCES = (
    texts(40, 1),
    [[one, other] for one, other in zip(texts(40, 2), texts(40, 3), strict=True)],
)
WRONG_REFERENCES = [
    *REFERENCES[:3],
    [],
    REFERENCES[4],
    [None],
    REFERENCES[6],
    None,
    *REFERENCES[8:],
]
SETTINGS_AND_COLUMNS = {
    "contexts": (
        {"context": "before", "matching": "doc-bert-score"},
        {"before": [[f"it is {number % 3}", "red"] for number in range(40)]},
    ),
    "idf of all rows": ({"idf": True}, {}),
    "idf of sentences": (
        {"idf": True, "idf_sents": ["the cat sat", "a dog ran", "a red house"]},
        {},
    ),
    "truncated texts": ({"names": ("p", "r", "f", "cut"), "max_length": 5}, {}),
    "wrong rows": (
        {"names": ("p", "r", "f", "cut"), "max_length": 5, "errors": "null"},
        {"candidate": [*CANDIDATES[:-1], None], "reference": WRONG_REFERENCES},
    ),
}


@pytest.fixture
def scored_rows(request, engine):
    def on_ray(table, bundle, **settings):
        import ray

        return score_dataset(
            ray.data.from_arrow([table.slice(0, 7), table.slice(7)]), bundle, **settings
        ).take_all()

    def on_spark(table, bundle, **settings):
        frame = request.getfixturevalue("spark").createDataFrame(table)
        return score_dataframe(frame, bundle, **settings).toArrow().sort_by("id").to_pylist()

    return {"ray": on_ray, "spark": on_spark}[engine]


@pytest.mark.filterwarnings("ignore:.* longer than .* truncated:UserWarning")
@on_each_engine
@pytest.mark.parametrize("case", SETTINGS_AND_COLUMNS)
def test_rows_are_those_of_a_batch_of_one_machine(scored_rows, tiny_bundle, case):
    settings, columns = SETTINGS_AND_COLUMNS[case]
    table = pa.table({"id": range(40), "candidate": CANDIDATES, "reference": REFERENCES} | columns)
    counts = {"idf": CountBatch(tiny_bundle).count(table)} if settings == {"idf": True} else {}
    expected = ScoreBatch(tiny_bundle, nthreads=1, **settings | counts)(table)
    if "cut" in expected.column_names:
        assert {False, True} <= set(expected["cut"].to_pylist())
    if "error" in expected.column_names:
        assert [row for row, reason in enumerate(expected["error"].to_pylist()) if reason] == [
            3,
            5,
            7,
            39,
        ]
    rows = scored_rows(table, tiny_bundle, **settings)
    assert [list(row) for row in rows] == [expected.column_names] * 40
    assert rows == expected.to_pylist()
