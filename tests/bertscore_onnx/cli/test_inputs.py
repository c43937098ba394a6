import csv
import io
import json
import re
import sys
from collections.abc import Sized
from contextlib import contextmanager, nullcontext

import pytest

from bertscore_onnx.cli.inputs import InputFile, choose_inputs
from bertscore_onnx.cli.pairs import open_pairs
from bertscore_onnx.cli.specs import columns_of
from bertscore_onnx.cli.terminal import with_options
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables import sources
from bertscore_onnx.tables.sources import lines_of
from tests.support.command_line import Pipe


def texts(*paths):
    return [InputFile(str(path)) for path in paths]


@pytest.fixture
def pipe(monkeypatch):
    def pipe(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(content)))

    return pipe


def test_lines_that_are_held_whole_have_to_fit_into_memory(write, monkeypatch):
    file = str(write("a", "a\nb\n"))
    assert lines_of(file, "texts") == ["a", "b"]
    monkeypatch.setattr(sources, "MAX_HELD_BYTES", 150)
    with pytest.raises(InputError, match="more than the 150 bytes of memory"):
        lines_of(file, "texts")


@contextmanager
def refused_with(message):
    """Expect an InputError whose message, as the shell prints it, matches."""
    with pytest.raises(InputError) as caught:
        yield
    assert re.search(message, with_options(caught.value))


IDS = {
    "csv": "id,reference\n1,c\n2,d\n",
    "tsv": "reference\tsegment\nc\t1\nd\t2\n",
    "jsonl": '{"id": 1, "reference": "c"}\n{"id": 2.0, "reference": "d"}\n',
    "none.jsonl": '{"reference": "c", "id": null}\n{"reference": "d"}\n',
    "named otherwise.csv": "ID ,reference\n1,c\n2,d\n",
    "other.csv": "name,reference\n9,c\n8,d\n",
}
"""Tables of references that belong to candidates with the ids 1 and 2."""


@pytest.mark.parametrize("name", IDS)
def test_tables_whose_ids_agree_or_that_have_none_are_paired(write, name):
    files = choose_inputs(
        [str(write("c.csv", "id,candidate\n1,a\n2,b\n"))], [str(write(f"r.{name}", IDS[name]))]
    )
    with open_pairs(files) as pairs:
        assert list(pairs) == list(pairs) == [("a", ["c"]), ("b", ["d"])]


@pytest.mark.parametrize(
    ("candidates", "references", "named", "is_refused"),
    [
        ("segment,id,candidate\n0,k1,a\n1,k2,b\n", "id,reference\nk1,c\nk2,d\n", (), True),
        (
            "segment,id,candidate\n0,k1,a\n1,k2,b\n",
            "id,reference\nk1,c\nk2,d\n",
            ("segment=id",),
            False,
        ),
        ("id,candidate\nk1,a\nk2,b\n", "item,reference\nk2,d\nk1,c\n", (), True),
        (
            "id,candidate\nk1,a\nk2,b\n",
            "item,reference\nk2,d\nk1,c\n",
            ("segment=id", "segment=item"),
            False,
        ),
        ("task,id,candidate\nx,1,a\ny,1,b\n", "id,task,reference\n1,y,d\n1,x,c\n", (), True),
        (
            "task,id,candidate\nx,1,a\ny,1,b\n",
            "id,task,reference\n1,y,d\n1,x,c\n",
            ("segment=task+id",),
            False,
        ),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_ids_are_in_the_first_column_of_the_usual_names_or_of_those_that_are_named(
    write, candidates, references, named, is_refused, suffix
):
    if suffix == "jsonl":
        references = "".join(
            f"{json.dumps(row)}\n" for row in csv.DictReader(references.splitlines())
        )
    columns = columns_of(named, "segment")
    files = choose_inputs(
        [str(write("c.csv", candidates))], [str(write(f"r.{suffix}", references))], columns=columns
    )
    refused = refused_with("--columns segment=")
    with refused if is_refused else nullcontext(), open_pairs(files) as pairs:
        assert list(pairs) == list(pairs) == [("a", ["c"]), ("b", ["d"])]


def test_columns_of_texts_hold_no_ids(write):
    named = columns_of(["candidate=line", "reference=line"], "candidate", "reference")
    for name, content in (("r.csv", "line\nc\nd\n"), ("r.jsonl", '{"line": "c"}\n{"line": "d"}\n')):
        files = [str(write("c.csv", "line\na\nb\n"))], [str(write(name, content))]
        with open_pairs(choose_inputs(*files, columns=named)) as pairs:
            assert list(pairs) == [("a", ["c"]), ("b", ["d"])]
    candidates = write("c.csv", "line,id\na,1\nb,2\n")
    for ids, fits in (((1, 2), True), ((1, 3), False)):
        table = write(
            "r.jsonl",
            "".join(
                f'{{"line": "{text}", "id": {name}}}\n'
                for text, name in zip("cd", ids, strict=True)
            ),
        )
        files = choose_inputs([str(candidates)], [str(table)], columns=named)
        with (
            nullcontext() if fits else pytest.raises(InputError, match="segment '2' is not in"),
            open_pairs(files) as pairs,
        ):
            assert list(pairs) == [("a", ["c"]), ("b", ["d"])]


def test_ids_of_parquet_are_numbers_or_texts(write, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"reference": ["c", "d"], "id": [1, 2]}), tmp_path / "r.parquet")
    for ids, fits in (("12", True), ("13", False)):
        table = write("c.csv", f"id,candidate\n{ids[0]},a\n{ids[1]},b\n")
        files = choose_inputs([str(table)], [str(tmp_path / "r.parquet")])
        with (
            nullcontext() if fits else pytest.raises(InputError, match="segment '3' is not in"),
            open_pairs(files) as pairs,
        ):
            assert list(pairs) == [("a", ["c"]), ("b", ["d"])]


def test_rows_with_the_same_ids_in_another_order_are_joined(write):
    first, second = (
        write("c.csv", "id,candidate\n1,a\n2,b\n3,c\n"),
        write("r.tsv", "id\treference\n1\ta\n3\tc\n2\tb\n"),
    )
    third = write(
        "s.jsonl",
        '{"id": 2, "reference": ["x", "y"]}\n{"id": 1, "reference": "z"}\n{"id": 3, "reference": '
        '"w"}\n',
    )
    with open_pairs(choose_inputs([str(first)], [str(second), str(third)])) as pairs:
        expected = [("a", ["a", "z"]), ("b", ["b", "x", "y"]), ("c", ["c", "w"])]
        assert list(pairs) == list(pairs) == expected
    with open_pairs(
        choose_inputs([str(first)], [str(second)], columns=columns_of(["segment=none"], "segment"))
    ) as pairs:
        assert [references for _, references in pairs] == [["a"], ["c"], ["b"]]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("13", "c.csv, line 3: segment '2' is not in .*r.tsv"),
        ("1234", "r.tsv, line 5: segment '4' is not in .*c.csv"),
        ("1332", "r.tsv, line 4: segment '3' occurs again; it is in .*r.tsv, line 3 too"),
    ],
)
def test_the_segment_that_one_table_lacks_or_has_twice_is_named(write, ids, message):
    first = write("c.csv", "id,candidate\n1,a\n2,b\n3,c\n")
    second = write("r.tsv", "id\treference\n" + "".join(f"{name}\ta\n" for name in ids))
    refused = refused_with(rf"{message}.*--columns segment=NAME")
    with refused, open_pairs(choose_inputs([str(first)], [str(second)])):
        pass


def test_a_key_of_two_columns_is_offered_for_repeated_ids(write):
    first = write("c.csv", "id,subset,candidate\n1,x,a\n2,x,b\n1,y,c\n2,y,d\n")
    second = write("r.csv", "id,subset,reference\n1,x,a\n2,x,b\n1,y,c\n2,y,d\n")
    refused = refused_with(r"c.csv, line 4: segment '1' occurs again.*--columns segment=NAME\+NAME")
    with refused, open_pairs(choose_inputs([str(first)], [str(second)])):
        pass


QUESTIONS = [f"question {row}" for row in range(12)]


def delimited(columns):
    return (
        "\n".join(
            ",".join(map(str, row)) for row in [columns, *zip(*columns.values(), strict=True)]
        )
        + "\n"
    )


@pytest.mark.parametrize("ids", [{}, {"id": range(12)}])
@pytest.mark.parametrize("name", ["question", "prompt"])
def test_values_that_contradict_the_positions_are_named(write, ids, name):
    texts = [f"text {row}" for row in range(12)]
    first = write("c.csv", delimited({**ids, "question": QUESTIONS, "candidate": texts}))
    other = {**ids, name: QUESTIONS[::-1], "reference": texts[::-1]}
    files = [str(first)], [str(write("r.csv", delimited(other)))]
    second = "" if name == "question" else f" segment={name}"
    message = (
        f"c.csv, line 2 meets .*r.csv, line 2, but its 'question' is the '{name}' of .*r.csv, "
    )
    refused = refused_with(f"{message}line 13.*segment=question{second}")
    with refused, open_pairs(choose_inputs(*files)):
        pass
    named = columns_of(["segment=question", *[f"segment={name}"] * (name != "question")], "segment")
    with open_pairs(choose_inputs(*files, columns=named)) as pairs:
        assert list(pairs) == list(pairs) == [(text, [text]) for text in texts]


def test_by_position_a_column_shows_the_order_or_one_table_has_none_that_could(write):
    texts = [f"text {row}" for row in range(12)]
    first = write("c.csv", delimited({"question": QUESTIONS, "candidate": texts}))
    other = write("r.csv", delimited({"question": QUESTIONS, "reference": texts}))
    with open_pairs(choose_inputs([str(first)], [str(other)])) as pairs:
        assert list(pairs) == [(text, [text]) for text in texts]
    assert pairs.joins[0].endswith("are joined by position: 'question' agrees.")
    references = [f"reference {row}" for row in range(12)]
    unlike = write("s.csv", delimited({"latency": range(30, 42), "reference": references}))
    refused = pytest.raises(
        InputError,
        match=r"Nothing shows that the rows of .*c.csv and .*s.csv are in the same order",
    )
    with refused, open_pairs(choose_inputs([str(first)], [str(unlike)])):
        pass
    alone = write("t.csv", delimited({"candidate": texts}))
    with open_pairs(choose_inputs([str(alone)], [str(unlike)])) as pairs:
        assert list(pairs) == [
            (text, [reference]) for text, reference in zip(texts, references, strict=True)
        ]
    assert pairs.joins[0].endswith("are joined by position: nothing contradicts it.")


def test_ids_beside_lines_of_text_are_in_order(write):
    lines = write("r", "c\nd\n")
    table = write("c.csv", "id,candidate\n2,a\n10,b\n")
    with open_pairs(choose_inputs([str(table)], [str(lines)])) as pairs:
        assert list(pairs) == [("a", ["c"]), ("b", ["d"])]
    files = [str(write("d.csv", "id,candidate\n10,a\n2,b\n"))], [str(lines)]
    refused = pytest.raises(InputError, match="line 3: segment '2' is not in the order of ids")
    with refused, open_pairs(choose_inputs(*files)):
        pass
    with open_pairs(
        choose_inputs(*files, columns=columns_of(["segment=none"], "segment"))
    ) as pairs:
        assert list(pairs) == [("a", ["c"]), ("b", ["d"])]


def test_a_table_in_a_pipe_is_joined_as_a_file_is(write, pipe):
    first = write("c.csv", "id,name,candidate\n1,x,a\n2,y,b\n")
    named = columns_of(["segment=name"], "segment")
    pipe(b'{"name": "y", "reference": "b"}\n{"name": "x", "reference": "a"}\n')
    with open_pairs(
        choose_inputs([str(first)], ["-"], columns=named, input_formats=["csv", "jsonl"])
    ) as pairs:
        assert list(pairs) == list(pairs) == [("a", ["a"]), ("b", ["b"])]
    other = write("r.csv", "id,reference\n1,a\n2,b\n")
    refused = pytest.raises(
        InputError, match=r"r.csv: there is no column 'name', only 'id', 'reference'"
    )
    with refused, open_pairs(choose_inputs([str(first)], [str(other)], columns=named)):
        pass


def test_pairs_of_a_pipe_are_read_once_and_again_on_request(write, pipe):
    expected = [("a", ["c"]), ("b", ["d"])]
    pipe(b"a\nb\n")
    with open_pairs(texts("-", write("r", "c\nd\n"))) as pairs:
        assert not isinstance(pairs, Sized)
        assert list(pairs) == expected
    pipe(b"c\nd\n")
    with open_pairs(texts(write("c", "a\nb\n"), "-"), to_read_again=True) as pairs:
        assert list(pairs) == list(pairs) == expected


@pytest.mark.parametrize(
    ("contents", "message", "alone"),
    [
        (["a\nb\n", "c\nd\n", "e\n"], "2 has 1 line and 0 has 2 lines;", "line 2 of 0"),
        (["a\n", "c\nd\n"], "0 has 1 line and 1 has 2 lines;", "line 2 of 1"),
        (["a\n" * 1001, "c\n" * 1000], "1 has 1000 lines and 0 has 1001 lines;", "line 1001 of 0"),
    ],
)
def test_different_numbers_of_lines_are_refused_before_any_is_used(
    write, monkeypatch, tmp_path, contents, message, alone
):
    monkeypatch.chdir(tmp_path)
    names = [write(str(number), content).name for number, content in enumerate(contents)]
    with refused_with(f"^{message} .*: {alone} has no partner"), open_pairs(texts(*names)):
        pass


def test_references_that_differ_are_refused_before_a_pipe_of_candidates_is_read(write, pipe):
    pipe(b"a\nb\n")
    files = texts("-", write("r1", "c\nd\n"), write("r2", "e\n"))
    with pytest.raises(InputError, match=r"r2 has 1 line and .*r1 has 2 lines;"), open_pairs(files):
        pass
    assert sys.stdin.buffer.read() == b"a\nb\n"


@pytest.mark.parametrize(
    ("piped", "message"),
    [
        (b"a\n", "^Standard input has 1 line and .*r has 2 lines;"),
        (b"a\nb\nc\n", "r has 2 lines and Standard input has more;"),
    ],
)
def test_a_pipe_that_ends_early_or_late_is_refused_after_the_pairs(write, pipe, piped, message):
    pipe(piped)
    read = []
    with (
        pytest.raises(InputError, match=message),
        open_pairs(texts("-", write("r", "c\nd\n"))) as pairs,
    ):
        read.extend(pairs)
    assert [candidate for candidate, _ in read] == ["a", "b"][: len(piped) // 2]


@pytest.mark.parametrize(
    ("row", "remedy"),
    [
        ({"id": "1", "prediction": "c", "references": "r"}, None),
        ({"id": "1", "output": "c", "target": "r"}, None),
        ({" Response": "c", "Ground_Truth": "r"}, None),
        ({"output": "c", "candidate": "c", "reference": "r"}, "--columns candidate=NAME"),
        ({"candidate": "c", "target2": "r", "references": "r"}, "--columns reference=NAME"),
        ({"candidate": "c", "target": "r", "Target": "r"}, "--columns reference=NAME"),
    ],
)
def test_texts_are_in_the_only_column_of_a_usual_name(write, row, remedy):
    path = write("c.jsonl", json.dumps(row))
    files = choose_inputs([str(path)], [])
    with nullcontext() if remedy is None else refused_with(remedy), open_pairs(files) as pairs:
        assert list(pairs) == [("c", ["r"])]
