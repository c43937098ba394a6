"""Values of columns show that the rows of two tables belong together, or contradict it, whatever
columns are called.
"""

import random
import re
from collections import Counter
from contextlib import suppress
from unicodedata import normalize

import numpy as np
import pytest

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.joins import (
    BLANK,
    ColumnKeys,
    Evidence,
    JoinedTable,
    Moved,
    column_keys,
    evidence_of,
    join_tables,
)
from bertscore_onnx.tables.whole_table import WholeTable

NUM_ROWS = 40


def table(outputs=(), **columns):
    """Return a table whose text columns alone have words."""
    texts = [values for values in columns.values() if isinstance(values[0], str)]

    def words(row):
        return [word for values in texts for word in re.findall(r"\w{3,}", str(values[row]))]

    all_keys = {name: column_keys(values) for name, values in columns.items()}
    joined = {name: ColumnKeys(keys, keys) for name, keys in all_keys.items()}
    return JoinedTable(joined, words, frozenset(outputs))


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
    assert len({*column_keys([1.5, np.array([1.5, 2])]).tolist()}) == 2


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


NOUNS = [
    "river",
    "stone",
    "market",
    "engine",
    "winter",
    "letter",
    "garden",
    "bridge",
    "teacher",
    "window",
]

CONTENT = {
    "NFD": lambda text: normalize("NFD", text),
    "line ends": lambda text: text.replace(", ", ",\r\n"),
    "blanks": lambda text: text.replace(" ", "\u00a0"),
    "quotes": lambda text: text.replace("'", "\u2019"),
    "case": str.upper,
    "template": "Question: {}\nAnswer:".format,
    "cut": lambda text: text[:70],
}
"""Steps that leave each row its question, in other letters."""

MOVES = {
    "shuffle": lambda chance, rows: chance.shuffle(rows),
    "exchange": lambda chance, rows: rows.insert(0, rows.pop()),
    "sort": lambda chance, rows: rows.sort(key=lambda row: row["question"]),
}
"""Steps after which ids that count, and positions, are of other rows."""


def drawn_question(chance):
    nouns = chance.sample(NOUNS, 2)
    names = " ".join(f"{chance.choice('BDFGKL')}{chance.randrange(10**6)}é" for _ in range(5))
    return f"What's the {nouns[0]} of the {nouns[1]}, {names}?"


def draw_tables(chance):
    """Return two tables of the same items, the item of each row of the second among those of the
    first, and whether their ids count rows, are known, or are missing.
    """
    number = chance.choice([16, 40, 120])
    items = [
        {"item": row, "question": drawn_question(chance), "label": chance.randrange(7)}
        for row in range(number)
    ]
    ids = chance.choice(["counted", "known", ""])
    tables = []
    for steps in ([], chance.sample([*CONTENT, *MOVES], chance.randrange(4))):
        rows = [{**row, "id": f"k{7919 * row['item'] % 99991}"} for row in items]
        for step in steps:
            if step in MOVES:
                MOVES[step](chance, rows)
            else:
                for row in rows:
                    row["question"] = CONTENT[step](row["question"])
        for position, row in enumerate(rows):
            row["latency"] = chance.random()
            if ids == "counted":
                row["id"] = f"q{position}"
        tables.append(rows)
    # Without questions nothing shows the order.
    names = [
        *["question"][: chance.random() < 0.85],
        "latency",
        *["label"][: chance.randrange(2)],
        *["id"][: len(ids)],
    ]
    first, second = (
        WholeTable.of_frame({name: [row[name] for row in rows] for name in names}, title)
        for rows, title in zip(tables, "AB", strict=True)
    )
    return first, second, [row["item"] for row in tables[1]], ids


def test_wrong_joins_are_refused_and_the_ways_out_are_right():
    chance = random.Random(5)  # noqa: S311 -- of tables
    outcomes = Counter()
    for _ in range(300):
        first, second, items, ids = draw_tables(chance)
        kind = ids == "known" or items == [*range(len(items))]
        try:
            join = join_tables(first, second)
        except InputError as error:
            outcomes[kind, "refused"] += 1
            values = [part.value["segment"] for part in error.parts if isinstance(part, Argument)]
            assert not (ids and "none" in values)
            # `segment=id` and `segment=none` are for those who know that these are right.
            trusted = ["id" if ids else "none"] if kind else []
            for named in {*values} & {"question", *trusted}:
                with suppress(InputError):  # the questions are written in another way
                    found = join_tables(first, second, [named]).rows
                    assert [items[row] for row in found] == [*range(len(items))]
        else:
            assert kind == ([items[row] for row in join.rows] == [*range(len(items))])
            outcomes[kind, "joined"] += 1
    assert outcomes[True, "refused"] <= 0.15 * outcomes[True, "joined"]
    assert outcomes[False, "joined"] <= 0.01 * outcomes[False, "refused"]


def test_rare_words_show_the_order_or_contradict_it():
    texts = [drawn_question(random.Random(row)) for row in range(20)]  # noqa: S311 -- of words
    prompts = [f"Question: {text}" for text in texts]
    assert evidence_of(table(text=texts), table(text=prompts)) == Evidence(shown_by="words agree")
    prompts[:2] = prompts[1::-1]
    assert evidence_of(table(text=texts), table(text=prompts)).moved == Moved(0, 1)


def test_values_that_python_calls_equal_and_that_read_otherwise_do_not_agree():
    first = WholeTable.of_frame({"label": [True, False] * 20}, "A")
    second = WholeTable.of_frame({"label": [1, 0] * 20}, "B")
    with pytest.raises(InputError, match="Nothing shows"):
        join_tables(first, second)


@pytest.mark.parametrize("other", ["Q7", "q07", "'q7", "\uff517"])
def test_an_id_that_looks_alike_is_named(other):
    first = WholeTable.of_frame({"id": ["q7", "q8"]}, "A")
    second = WholeTable.of_frame({"id": [other, "q8"]}, "B")
    with pytest.raises(InputError, match=r"'q7' is not in B, but .* is"):
        join_tables(first, second)
