"""Values of columns show that the rows of two tables belong together, or contradict it, whatever
columns are called.
"""

import re

import numpy as np
import pytest

from bertscore_onnx.tables.joins import (
    BLANK,
    ColumnKeys,
    Evidence,
    JoinedTable,
    Moved,
    column_keys,
    evidence_of,
)

NUM_ROWS = 40


def table(outputs=(), **columns):
    """Return a table whose text columns alone have words."""
    texts = [values for values in columns.values() if isinstance(values[0], str)]

    def words(row):
        return [word for values in texts for word in re.findall(r"\w{3,}", str(values[row]))]

    keys = {name: ColumnKeys(column_keys(values)) for name, values in columns.items()}
    return JoinedTable(keys, words, frozenset(outputs))


def shuffled(columns, order):
    return {name: [values[row] for row in order] for name, values in columns.items()}


@pytest.mark.parametrize(
    "cells",
    [
        [7, 7.0, "7", "007", " 7 ", "7.0", np.int64(7), np.float32(7)],
        ["Text", " text", "TEXT "],
        [["a", "b"], '["a", "b"]', "['a', 'b']", "['a' 'b']"],
        [True, "True", "true"],
        [None, float("nan"), "", "  ", "NA", "n/a", "null", [], "[]"],
    ],
)
def test_cells_that_read_alike_have_one_key(cells):
    keys = {int(column_keys([cell])[0]) for cell in cells}
    assert len(keys) == 1
    assert (keys == {BLANK}) == (cells[0] is None)
    assert {*column_keys(cells).tolist()} == keys


def test_cells_that_read_otherwise_have_other_keys():
    cells = [
        0,
        1,
        1.5,
        "a",
        "a b",
        "ab",
        "1_0",
        "2026-01-01",
        "12345678901234567890",
        "12345678901234567891",
        "[x",
        None,
    ]
    assert len({*column_keys(cells).tolist()}) == len(cells)
    assert column_keys([1.0, float("nan"), 0.0]).tolist() == [1, BLANK, 0]


QUESTIONS = [f"question {row}" for row in range(NUM_ROWS)]


def test_a_value_in_other_rows_is_named_whatever_the_columns_are_called():
    evidence = evidence_of(
        table(question=QUESTIONS), table(prompt=[QUESTIONS[1], QUESTIONS[0], *QUESTIONS[2:]])
    )
    assert evidence.moved == Moved(0, 1, "question", "prompt")


def test_an_edited_row_still_shows_the_order():
    evidence = evidence_of(table(question=QUESTIONS), table(question=["edited", *QUESTIONS[1:]]))
    assert (evidence.moved, evidence.shown_by) == (None, "'question' agrees")


def test_a_column_that_agrees_by_construction_does_not_hide_another():
    columns = {"row": range(NUM_ROWS), "question": QUESTIONS}
    other = {"row": range(NUM_ROWS), "question": QUESTIONS[::-1]}
    assert evidence_of(table(**columns), table(**other)).moved == Moved(
        0, NUM_ROWS - 1, "question", "question"
    )


def test_five_values_equally_often_have_to_stand_in_the_same_rows_and_four_need_not():
    topics = [f"topic {row % 5}" for row in range(NUM_ROWS)]
    assert evidence_of(table(topic=topics), table(topic=topics[::-1])).moved is not None
    few = [f"topic {row % 4}" for row in range(NUM_ROWS)]
    assert evidence_of(table(topic=few), table(topic=few[::-1])).moved is None


def test_a_column_that_is_equal_in_all_rows_shows_no_order_by_few_values():
    documents = [row // 8 for row in range(NUM_ROWS)]
    latencies = np.random.default_rng(1).uniform(size=(2, NUM_ROWS)).tolist()
    first, second = (table(doc=documents, latency=latency) for latency in latencies)
    assert evidence_of(first, second).unsettled == ("latency", "latency")


def test_a_table_with_nothing_that_could_show_the_order_is_joined():
    beside = table(
        prediction=QUESTIONS,
        model=["m"] * NUM_ROWS,
        row=range(1, NUM_ROWS + 1),
        outputs=["prediction"],
    )
    evidence = evidence_of(
        table(latency=np.random.default_rng(1).uniform(size=NUM_ROWS).tolist()), beside
    )
    assert evidence == Evidence()


def test_a_counter_contradicts_only_a_column_that_does_not_count_its_rows():
    counter = table(row=range(NUM_ROWS))
    assert evidence_of(counter, table(line=range(1, NUM_ROWS + 1))).moved is None
    assert evidence_of(counter, table(row=[*range(1, NUM_ROWS), 0])).moved is not None


def test_independent_columns_do_not_look_alike():
    chance = np.random.default_rng(4)
    for number in (10, 40, 1000):
        for _ in range(200):
            milliseconds = chance.integers(20, 2000, (2, number)).tolist()
            shares = chance.uniform(size=(2, number)).round(3).tolist()
            evidence = evidence_of(
                *(
                    table(ms=column, share=share)
                    for column, share in zip(milliseconds, shares, strict=True)
                )
            )
            assert evidence.moved is None
            assert not evidence.shown_by


SHARED = {
    "question": lambda chance, rows: [f"Question {row}?" for row in rows],
    "source": lambda chance, rows: [f"text {row % 30} of {row}" for row in rows],
    "item": lambda chance, rows: chance.permutation(3 * len(rows))[rows].tolist(),
    "topic": lambda chance, rows: [f"topic {row % 9}" for row in rows],
    "difficulty": lambda chance, rows: chance.uniform(size=len(rows)).round(3)[rows].tolist(),
    "references": lambda chance, rows: [[f"reference {row}", "x"] for row in rows],
}
"""Columns that say of a segment the same in both tables."""

OWN = {
    "latency": lambda chance, number: chance.uniform(0, 9, number).tolist(),
    "tokens": lambda chance, number: chance.integers(9, 400, number).tolist(),
    "prediction": lambda chance, number: [
        f"answer {answer}" for answer in chance.integers(0, 90, number)
    ],
    "time": lambda chance, number: [
        f"2026-01-01T00:00:{second:02}" for second in chance.integers(0, 60, number)
    ],
    "model": lambda chance, number: [f"model {chance.integers(9)}"] * number,
    "row": lambda chance, number: list(range(1, number + 1)),
}
"""Columns of one table alone."""


def draw_tables(chance):
    """Return the columns of two tables of the same segments in the same order, under names of their
    own.
    """
    number = int(chance.choice([20, 40, 150]))
    rows = np.arange(number)
    rows[chance.choice(number, int(chance.integers(number // 4)), replace=False)] = chance.integers(
        number
    )
    shared = {
        name: SHARED[name](chance, rows)
        for name in chance.choice([*SHARED], chance.integers(1, 4), replace=False)
    }
    names = {name: chance.choice([name, name.upper(), f"{name} of the task"]) for name in shared}
    tables = []
    for columns in (shared, {names[name]: values for name, values in shared.items()}):
        own = chance.choice([*OWN], chance.integers(4), replace=False)
        tables.append({**{name: OWN[name](chance, number) for name in own}, **columns})
    if chance.random() < 0.2:
        edited = names[next(iter(shared))]
        tables[1][edited] = ["edited", *tables[1][edited][1:]]
    return tables


def test_tables_in_the_same_order_are_joined_and_shuffled_ones_are_not():
    chance = np.random.default_rng(11)
    num_refused = 0
    num_joined_wrongly = 0
    for _ in range(300):
        first, second = draw_tables(chance)
        evidence = evidence_of(table(["prediction"], **first), table(["prediction"], **second))
        num_refused += bool(evidence.moved or evidence.unsettled)
        order = chance.permutation(len(first[next(iter(first))]))
        moved = {name: values for name, values in shuffled(second, order).items() if name != "row"}
        evidence = evidence_of(table(["prediction"], **first), table(["prediction"], **moved))
        num_joined_wrongly += not (evidence.moved or evidence.unsettled)
    assert num_refused <= 0.16 * 300
    assert num_joined_wrongly <= 0.04 * 300
