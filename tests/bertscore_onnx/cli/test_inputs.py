import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import typer

from bertscore_onnx.cli.inputs import InputFile, choose_inputs, lines_of, open_pairs
from bertscore_onnx.cli.specs import columns_of
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables import sources
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


def test_references_of_several_files_stand_together_and_can_be_read_again(write):
    candidates, first, second = write("c", "a\nb\n"), write("r1", "c\nd\n"), write("r2", "e\nf\n")
    with open_pairs(texts(candidates, first, second)) as pairs:
        assert len(pairs) == 2
        assert list(pairs) == list(pairs) == [("a", ["c", "e"]), ("b", ["d", "f"])]


def test_a_file_may_be_candidates_and_references(write):
    path = write("texts", "a\nb\n")
    with open_pairs(texts(path, path, path)) as pairs:
        assert list(pairs) == [("a", ["a", "a"]), ("b", ["b", "b"])]


IDS = {
    "csv": "id,reference\n1,c\n2,d\n",
    "tsv": "reference\tsegment\nc\t1\nd\t2\n",
    "jsonl": '{"id": 1, "reference": "c"}\n{"id": 2.0, "reference": "d"}\n',
    "none.jsonl": '{"reference": "c", "id": null}\n{"reference": "d"}\n',
    "twice.csv": "id,reference,id\n5,c,6\n7,d,8\n",
    "other.csv": "name,reference\n9,c\n8,d\n",
}
"""Tables of references that belong to candidates with the ids 1 and 2."""


@pytest.mark.parametrize("name", IDS)
def test_tables_whose_ids_agree_or_that_have_none_are_paired(write, name):
    files = choose_inputs([str(write("c.csv", "id,candidate\n1,a\n2,b\n"))], [str(write(f"r.{name}", IDS[name]))])
    with open_pairs(files) as pairs:
        assert list(pairs) == list(pairs) == [("a", ["c"]), ("b", ["d"])]


@pytest.mark.parametrize(
    ("candidates", "references", "is_refused"),
    [
        ("segment,id,candidate\n0,k1,a\n1,k2,b\n", "id,reference\nk1,c\nk2,d\n", False),
        ("segment,id,candidate\n0,k1,a\n1,k2,b\n", "id,reference\nk1,c\nk3,d\n", True),
        ("line,id,candidate\nx,k1,a\ny,k2,b\n", "reference,seg_id,line\nc,0,x\nd,1,y\n", False),
        ("segment,candidate\nk1,a\nk2,b\n", "id,reference\nk1,c\nk3,d\n", True),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_ids_are_compared_by_the_column_that_two_tables_share(write, candidates, references, is_refused, suffix):
    if suffix == "jsonl":
        references = "".join(f"{json.dumps(row)}\n" for row in csv.DictReader(references.splitlines()))
    files = choose_inputs([str(write("c.csv", candidates))], [str(write(f"r.{suffix}", references))])
    refused = pytest.raises(InputError, match=r"Row 2 is 'k2' in .* 'k3' in .* --columns id=NAME")
    with refused if is_refused else nullcontext(), open_pairs(files) as pairs:
        assert list(pairs) == [("a", ["c"]), ("b", ["d"])]


def test_columns_of_texts_hold_no_ids(write):
    named = columns_of(["candidate=line", "reference=line"], "candidate", "reference")
    for name, content in (("r.csv", "line\nc\nd\n"), ("r.jsonl", '{"line": "c"}\n{"line": "d"}\n')):
        files = [str(write("c.csv", "line\na\nb\n"))], [str(write(name, content))]
        with open_pairs(choose_inputs(*files, columns=named)) as pairs:
            assert list(pairs) == [("a", ["c"]), ("b", ["d"])]
    candidates = write("c.csv", "line,id\na,1\nb,2\n")
    for ids, fits in (((1, 2), True), ((1, 3), False)):
        table = write(
            "r.jsonl", "".join(f'{{"line": "{text}", "id": {name}}}\n' for text, name in zip("cd", ids, strict=True))
        )
        files = choose_inputs([str(candidates)], [str(table)], columns=named)
        with nullcontext() if fits else pytest.raises(InputError, match="Row 2 is '2'"), open_pairs(files) as pairs:
            assert list(pairs) == [("a", ["c"]), ("b", ["d"])]


def test_lists_are_compared_as_ids_unless_their_column_is_named(write):
    lists = [str(write(f"{name}.jsonl", f'{{"id": ["x", 1], "{name}": "a"}}\n')) for name in ("candidate", "reference")]
    with open_pairs(choose_inputs(lists[:1], lists[1:])) as pairs:
        assert list(pairs) == [("a", ["a"])]
    candidates = write("c.csv", "line,candidate\n1,a\n")
    table = write("r.jsonl", '{"line": ["x"], "reference": "c"}\n')
    with pytest.raises(InputError, match="id=none"), open_pairs(choose_inputs([str(candidates)], [str(table)])):
        pass
    files = choose_inputs([str(candidates)], [str(table)], columns=columns_of(["id=line"], "id"))
    with pytest.raises(InputError, match="expected a text, or a whole number"), open_pairs(files):
        pass


def test_ids_of_parquet_are_numbers_or_texts(write, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"reference": ["c", "d"], "id": [1, 2]}), tmp_path / "r.parquet")
    for ids, fits in (("12", True), ("13", False)):
        table = write("c.csv", f"id,candidate\n{ids[0]},a\n{ids[1]},b\n")
        files = choose_inputs([str(table)], [str(tmp_path / "r.parquet")])
        with nullcontext() if fits else pytest.raises(InputError, match="Row 2 is '3'"), open_pairs(files) as pairs:
            assert list(pairs) == [("a", ["c"]), ("b", ["d"])]


def test_the_role_of_ids_is_called_segment_too():
    assert columns_of(["segment=name"], "id") == columns_of(["id=name"], "id")
    with pytest.raises(typer.BadParameter, match="id is given 2 times"):
        columns_of(["segment=name", "id=other"], "id")


def test_rows_with_the_same_ids_in_another_order_are_joined(write):
    first, second = write("c.csv", "id,candidate\n1,a\n2,b\n3,c\n"), write("r.tsv", "id\treference\n1\ta\n3\tc\n2\tb\n")
    third = write(
        "s.jsonl",
        '{"line": 3, "id": 2, "reference": ["x", "y"]}\n{"id": 1, "reference": "z"}\n{"id": 3, "reference": "w"}\n',
    )
    with open_pairs(choose_inputs([str(first)], [str(second), str(third)])) as pairs:
        expected = [("a", ["a", "z"]), ("b", ["b", "x", "y"]), ("c", ["c", "w"])]
        assert list(pairs) == list(pairs) == expected
    with open_pairs(choose_inputs([str(first)], [str(second)], columns=columns_of(["id=none"], "id"))) as pairs:
        assert [references for _, references in pairs] == [["a"], ["c"], ["b"]]


@pytest.mark.parametrize("ids", ["13", "134", "1332", "1344"])
def test_the_first_row_whose_ids_differ_is_named_before_any_is_used(write, ids):
    first = write("c.csv", "id,candidate\n1,a\n2,b\n3,c\n")
    second = write("r.tsv", "id\treference\n" + "".join(f"{name}\ta\n" for name in ids))
    with (
        pytest.raises(InputError, match=r"^Row 2 is '2' in .*c.csv and '3' in .*r.tsv; .* or add --columns id=none"),
        open_pairs(choose_inputs([str(first)], [str(second)])),
    ):
        pass


def test_ids_are_those_of_the_column_that_is_named_also_in_a_pipe(write, pipe):
    first = write("c.csv", "id,name,candidate\n1,x,a\n2,y,b\n")
    pipe(b'{"name": "x", "reference": "a"}\n{"name": "z", "reference": "b"}\n')
    named = columns_of(["id=name"], "id")
    with open_pairs(choose_inputs([str(first)], ["-"], columns=named, input_formats=["csv", "jsonl"])) as pairs:
        read = iter(pairs)
        assert next(read) == ("a", ["a"])
        with pytest.raises(InputError, match="Row 2 is 'y'"):
            next(read)
    other = write("r.csv", "id,reference\n1,a\n2,b\n")
    with (
        pytest.raises(InputError, match=r"no column 'name', .* Name one with --columns id=NAME"),
        open_pairs(choose_inputs([str(first)], [str(other)], columns=named)),
    ):
        pass


def test_pairs_of_a_pipe_are_read_once_and_again_on_request(write, pipe):
    expected = [("a", ["c"]), ("b", ["d"])]
    pipe(b"a\nb\n")
    with open_pairs(texts("-", write("r", "c\nd\n"))) as pairs:
        assert isinstance(pairs, Iterator)
        assert list(pairs) == expected
    pipe(b"c\nd\n")
    with open_pairs(texts(write("c", "a\nb\n"), "-"), to_read_again=True) as pairs:
        assert list(pairs) == list(pairs) == expected


@pytest.mark.parametrize(
    ("contents", "message", "alone"),
    [
        (["a\nb\n", "c\nd\n", "e\n"], "0 has 2 lines and 2 has 1 line;", "line 2 of 0"),
        (["a\n", "c\nd\n"], "0 has 1 line and 1 has 2 lines;", "line 2 of 1"),
        (["a\n" * 1001, "c\n" * 1000], "0 has 1001 lines and 1 has 1000 lines;", "line 1001 of 0"),
    ],
)
def test_different_numbers_of_lines_are_refused_before_any_is_used(
    write, monkeypatch, tmp_path, contents, message, alone
):
    monkeypatch.chdir(tmp_path)
    names = [write(str(number), content).name for number, content in enumerate(contents)]
    with pytest.raises(InputError, match=f"^{message} .*: {alone} has no partner"), open_pairs(texts(*names)):
        pass


def test_references_that_differ_are_refused_before_a_pipe_of_candidates_is_read(write, pipe):
    pipe(b"a\nb\n")
    files = texts("-", write("r1", "c\nd\n"), write("r2", "e\n"))
    with pytest.raises(InputError, match=r"r1 has 2 lines and .*r2 has 1 line;"), open_pairs(files):
        pass
    assert sys.stdin.buffer.read() == b"a\nb\n"


@pytest.mark.parametrize(
    ("piped", "message"),
    [(b"a\n", "^Standard input has 1 line and .*r has more;"), (b"a\nb\nc\n", "r has 2 lines and Standard input has")],
)
def test_a_pipe_that_ends_early_or_late_is_refused_after_the_pairs(write, pipe, piped, message):
    pipe(piped)
    read = []
    with pytest.raises(InputError, match=message), open_pairs(texts("-", write("r", "c\nd\n"))) as pairs:
        read.extend(pairs)
    assert [candidate for candidate, _ in read] == ["a", "b"][: len(piped) // 2]
