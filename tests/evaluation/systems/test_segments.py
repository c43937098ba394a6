"""Segments are joined by their ids: the order of rows, and the form of a table, change no
result.
"""

import json
import random
from functools import partial

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import compare, paired_permutation
from bertscore_onnx_evaluation.score_files import read_scores

pandas = pytest.importorskip("pandas")

SYSTEMS = ("newstest", "base", "other")
EXTRA = (
    "Unnamed: 0",
    "",
    "index",
    "year",
    "src_len",
    "human",
    "lang_pair",
    "doc_id",
    "num_tokens",
    "segmentNumber",
)
"""Columns of numbers that are no systems."""


@pytest.fixture
def table():
    """Scores of three systems for 40 segments, with the document of each."""
    chance = np.random.default_rng(7)
    scores = chance.normal(0.7, 0.1, 40)[:, None] + chance.normal([0.0, 0.01, 0.02], 0.05, (40, 3))
    frame = pandas.DataFrame(scores, columns=SYSTEMS)
    frame.insert(0, "segment", range(40))
    frame["document"] = [f"doc-{row // 4}" for row in range(40)]
    return frame


def shuffled(frame, seed):
    return frame.sample(frac=1, random_state=seed)


def long_form(frame, seed):
    rows = frame.melt(
        id_vars=["segment"], value_vars=list(SYSTEMS), var_name="system", value_name="score"
    )
    return shuffled(rows, seed)


def result(comparison):
    record = json.loads(comparison.to_json())
    del record["columns"], record["inputs"]
    return record


def compared(scores, systems=SYSTEMS, **options):
    return result(
        compare(
            scores={"comet": scores}, systems=systems, num_resamples=200, all_pairs=True, **options
        )
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_form_and_order_of_a_table_change_nothing(table, seed):
    draw = random.Random(seed)  # noqa: S311 -- of the form of a table
    table = table.assign(segment=3 * table["segment"])  # ids that only count have to be shown
    expected = compared(table, documents=table)
    given = table.drop(columns="document")
    for name in draw.sample(EXTRA, draw.randrange(len(EXTRA))):
        given.insert(draw.randrange(given.shape[1]), name, [draw.randrange(100) for _ in range(40)])
    given["segment"] = given["segment"].map(draw.choice([int, str, float]))
    if draw.random() < 0.5:
        given = given.sort_values("segment", key=lambda ids: ids.map(str))
    documents = shuffled(table[["segment", "document"]], seed)
    assert compared(shuffled(given, seed), documents=documents) == expected
    indexed = shuffled(table, seed).set_index("segment")
    assert compared(indexed, documents=indexed) == expected
    rows = long_form(table, seed)
    assert compared(rows, documents=documents) == expected
    unnamed = compared(rows, documents=documents, systems=None)
    assert [system["name"] for system in unnamed["systems"]] == [*dict.fromkeys(rows["system"])]


def test_a_paired_test_of_a_mapping_names_its_systems(table):
    test = partial(paired_permutation, num_swaps=50)
    expected = test(table[list(SYSTEMS)].to_numpy().T)
    found = test({name: table[name] for name in SYSTEMS})
    line = next(line for line in repr(found).splitlines() if line.startswith("other - newstest: "))
    assert line.endswith(f"{found.p[1]:.4f}".removeprefix("0"))
    assert line in found._repr_html_()
    assert (found.p.tolist(), found.interval.tolist()) == (
        expected.p.tolist(),
        expected.interval.tolist(),
    )


def test_texts_references_and_documents_are_joined(table):
    texts = table.assign(
        base=[f"the cat sat on {row} mats" for row in range(40)],
        other=[f"a cat is on {row + row % 3} mats" for row in range(40)],
        newstest=[f"{row}" for row in range(40)],
        reference=[f"the cat sits on {row} mats" for row in range(40)],
        source="katze",
    )
    expected = compare(
        {name: texts[name].tolist() for name in ("base", "other")},
        texts["reference"].tolist(),
        scores={"comet": {name: table[name] for name in ("base", "other")}},
        documents=table["document"],
        metrics=["bleu"],
        num_resamples=100,
    )
    found = compare(
        shuffled(texts[["segment", "source", "base", "other", "reference"]], 1),
        shuffled(texts, 2),
        scores={"comet": shuffled(table, 3)},
        systems=["base", "other"],
        documents=shuffled(table, 4),
        columns={"segment": "segment"},
        metrics=["bleu"],
        num_resamples=100,
    )
    assert result(found)["systems"] == result(expected)["systems"]
    assert [example.delta for example in found.examples] == [
        example.delta for example in expected.examples
    ]
    segment = found.examples[0].segment
    assert found.candidates[0][segment] == f"the cat sat on {found.segments[segment]} mats"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(index=7), "row 7: segment '7' is not in scores"),
        (
            lambda frame: frame.assign(other=frame["other"].where(frame["segment"] != 7)),
            "row 7: .* 'other' for .* '7'",
        ),
        (lambda frame: frame.replace({"segment": {7: 99}}), "segment '7' is not in scores"),
    ],
)
def test_a_segment_that_does_not_fit_is_named_or_dropped(table, change, message):
    documents = table[["segment", "document"]]
    with pytest.raises(InputError, match=message):
        compare(scores=change(table), systems=SYSTEMS, documents=documents)
    found = compare(
        scores=shuffled(change(table), 1), systems=SYSTEMS, documents=documents, missing="drop"
    )
    left = table[table["segment"] != 7]
    expected = compare(scores=left, systems=SYSTEMS, documents=left)
    assert [system.p for system in found.metrics[0].systems] == [
        system.p for system in expected.metrics[0].systems
    ]
    assert "7" in found.dropped
    number = len(found.dropped)
    assert f"|dropped:{number}" in found.metrics[0].signature
    assert f"{number} segment" in found.table("latex")
    assert found.table("tsv").splitlines()[1].split("\t")[-1] == str(number)
    assert f"{number} segment" in found.table()
    assert f"{number} segment" in found.to_html()
    assert found.to_dict()["dropped"] == list(found.dropped)


def test_rows_that_contradict_each_other_are_no_missing_ones(table):
    rows = long_form(table, 1)
    with pytest.raises(InputError, match="there is a second row for segment"):
        compare(scores=pandas.concat([rows, rows.iloc[[7]]]), missing="drop")
    for frame in (rows, table):
        ids = frame["segment"].where(frame["segment"] != 7)
        with pytest.raises(InputError, match="the column 'segment' holds"):
            compare(scores=frame.assign(segment=ids), systems=SYSTEMS, missing="drop")
    for missing in ("raise", "drop"):
        with pytest.raises(InputError, match=r"row 8: segment '8' occurs again; .* row 7"):
            compare(scores=table.replace({"segment": {7: 8}}), systems=SYSTEMS, missing=missing)


def test_lists_stand_beside_ids_in_order_only(table):
    documents = table["document"].tolist()
    assert compared(table, documents=documents) == compared(table, documents=table)
    for given, message in (
        (shuffled(table, 1), "is not in the order of ids, and documents"),
        (table[1:], "as many"),
    ):
        with pytest.raises(InputError, match=message):
            compare(scores=given, systems=SYSTEMS, documents=documents, missing="drop")


def test_by_position_an_index_is_no_ids(table):
    given = {name: shuffled(table, 2)[name] for name in SYSTEMS}
    lists = {name: scores.tolist() for name, scores in given.items()}
    by_position = compared(given, documents=table, columns={"segment": "none"})
    assert by_position == compared(lists, documents=table["document"].tolist())


def test_rows_of_one_segment_agree_about_its_document(table):
    rows = table.melt(
        id_vars=["segment", "document"],
        value_vars=list(SYSTEMS),
        var_name="system",
        value_name="score",
    )
    assert compared(rows, documents=shuffled(rows, 1)) == compared(rows, documents=table)
    rows.loc[45, "document"] = "another"
    with pytest.raises(InputError, match=r"row 45: segment '5' has another value of 'document'"):
        compare(scores=rows, documents=rows)


# Tables without ids are joined by position if they show that their order is the same, and refused
# otherwise.

OWN = {
    "latency": lambda chance: chance.uniform(0, 9, 40),
    "prediction": lambda chance: [f"answer {number}" for number in chance.integers(0, 90, 40)],
    "model": lambda chance: [f"model {chance.random()}"] * 40,
    "run_id": lambda chance: [int(chance.integers(1 << 40))] * 40,
}
"""What two systems have of their own for 40 segments."""


def two_tables(chance, shared, own):
    """Return two tables of scores, of which the second is better in each segment."""
    scores = chance.uniform(0.2, 0.6, 40)
    return [
        pandas.DataFrame({**shared, **{name: OWN[name](chance) for name in own}, "score": numbers})
        for numbers in (scores, scores + 0.01)
    ]


FORMS = {
    "frame": lambda frame, file: frame,
    "csv": lambda frame, file: frame.to_csv(f"{file}.csv", index=False),
    "tsv": lambda frame, file: frame.to_csv(f"{file}.tsv", index=False, sep="\t"),
    "jsonl": lambda frame, file: frame.to_json(f"{file}.jsonl", orient="records", lines=True),
    "parquet": lambda frame, file: frame.to_parquet(f"{file}.parquet", index=False),
}


def compared_files(tables, forms, folder, **options):
    """Return how often the second system is better, by tables in these forms."""
    given = {}
    for at, (table, form) in enumerate(zip(tables, forms, strict=True)):
        written = FORMS[form](table, folder / str(at))
        given[f"s{at}"] = read_scores(str(folder / f"{at}.{form}")) if written is None else written
    return compare(scores=given, num_resamples=20, **options).metrics[0].systems[1].won


@pytest.mark.parametrize("forms", [("frame", "csv"), ("tsv", "jsonl"), ("jsonl", "parquet")])
def test_tables_without_ids_are_joined_only_if_they_are_in_the_same_order(forms, tmp_path):
    pytest.importorskip("pyarrow")
    chance = np.random.default_rng(2)
    shared = {"references": [[f"reference {row}", "x"] for row in range(40)]}
    first, second = two_tables(chance, shared, ["latency", "prediction"])
    assert compared_files((first, second), forms, tmp_path) == 40
    moved = second.iloc[chance.permutation(40)].reset_index(drop=True)
    with pytest.raises(InputError, match=r"By position, .* meets .*, but its"):
        compared_files((first, moved), forms, tmp_path)
    assert compared_files((first, moved), forms, tmp_path, columns={"segment": "none"}) < 40


def test_columns_of_one_value_and_numbers_of_rows_show_no_order():
    chance = np.random.default_rng(3)
    first, second = two_tables(chance, {"number": range(1, 41)}, ["model", "run_id"])
    assert compare(scores={"A": first, "B": second}).metrics[0].systems[1].won == 40
    first, second = two_tables(chance, {"number": range(1, 41)}, ["model", "latency"])
    with pytest.raises(InputError, match="look at 'latency'"):
        compare(scores={"A": first, "B": second})
    label = [f"row {row}" for row in range(40)]
    questions = second.assign(label=label, question=[f"q {row}" for row in range(40)])
    edited = questions.replace({"question": {"q 7": "q 99"}})
    shown = compare(scores={"A": questions[["question", "score"]], "B": edited})
    assert shown.metrics[0].systems[1].tied == 40
    numbered_again = questions.assign(
        question=questions["question"].sample(frac=1, random_state=1).tolist()
    )
    with pytest.raises(InputError, match="its 'question' is the 'question' of"):
        compare(scores={"A": questions, "B": numbered_again})


def test_a_table_without_ids_beside_one_with_ids_shows_its_order(table):
    shown = table.assign(question=[f"question {row}" for row in range(40)])
    documents = shown[["question", "document"]]
    assert compared(shown, documents=documents) == compared(shown, documents=shown)
    with pytest.raises(InputError, match="its 'question' is the 'question' of"):
        compared(shown, documents=shuffled(documents, 1).reset_index(drop=True))


def test_tables_without_rows_have_no_segment():
    empty = pandas.DataFrame({"A": [], "B": []})
    with pytest.raises(InputError, match="No segment"):
        compare(
            empty,
            pandas.DataFrame({"reference": []}),
            scores=empty,
            systems=["A", "B"],
            metrics=["bleu"],
        )
