"""Reading fields of JSON lines."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.cli.inputs import candidate_column, reference_columns
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.readers import read_json_lines
from bertscore_onnx.tables.sources import Source

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PAIR = '{"candidate": "a", "reference": "b"}\n'


def test_a_field_may_be_a_text_or_a_list_of_references(write, read_rows):
    path = write("pairs.jsonl", f'{PAIR}{{"candidate": "c", "id": 1, "references": ["d", "e", "f"]}}\n')
    assert read_rows(path) == [["a", "b"], ["c", "d", "e", "f"]]


def test_fields_go_by_other_names_too(write, read_rows):
    path = write("pairs.ndjson", '{"output": "a", "gold": "b", "more": ["c"]}\n')
    assert read_rows(path, "output", ["gold", "more"]) == [["a", "b", "c"]]


def test_blank_lines_are_skipped(write, read_rows):
    assert read_rows(write("pairs.jsonl", f"\n{PAIR}\r\n \n{PAIR}\n")) == [["a", "b"], ["a", "b"]]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[1, 2]", "expected a JSON object. Objects stand one a line; `jq -c"),
        ("{", r"expected a JSON object \(.*truncated.*\). Objects stand one a line"),
        ('{"candidate": ' + "[" * 100_000, r"expected a JSON object \(.*recursion.*\)"),
        (r'{"candidate": "\ud800 and more"}', r"expected a JSON object \(.*surrogate.*\)"),
        ('{"mt": "a"}', "there is no column 'candidate', only 'mt'. Name one with --candidate-column."),
        ("{}", "there is no column 'candidate', nor any other."),
        ('{"candidate": "a"}', "there is no column 'reference' or 'references', only 'candidate'. Name one with --ref"),
        (
            '{"candidate": null, "reference": "b"}',
            "the column 'candidate' holds null; expected a text. Leave the row out",
        ),
        ('{"candidate": 3, "reference": "b"}', "the column 'candidate' holds a number; expected a text."),
        ('{"candidate": ["a"], "reference": "b"}', "'candidate' holds a list; expected a text. .* a row for each"),
        (
            '{"candidate": "a", "reference": {}}',
            "'reference' holds an object; expected a text, or a list of one or more.",
        ),
        (
            '{"candidate": "a", "reference": []}',
            "'reference' holds an empty list; expected a text, or a list of one or",
        ),
        ('{"candidate": "a", "reference": ["b", null]}', "'reference' holds a list with null in it; expected"),
        ('{"candidate": "a", "reference": true}', "'reference' holds true or false; expected"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(write, read_rows, line, told):
    with pytest.raises(InputError, match=rf"pairs\.jsonl, line 3: (the column )?{told}"):
        read_rows(write("pairs.jsonl", f"{PAIR}\n{line}\n"))


def test_many_columns_are_named_in_part(write, read_rows):
    names = {f"{'x' * 50}{number}": "" for number in range(30)}
    with pytest.raises(InputError, match=r"only 'x{37}\.\.\.', .* and 18 more\. Name") as caught:
        read_rows(write("pairs.jsonl", json.dumps(names)))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_files_without_objects_are_refused(write, read_rows, content):
    with pytest.raises(InputError, match=r"is empty; expected a JSON object a line|has no rows"):
        read_rows(write("pairs.jsonl", content))


@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=5), st.booleans())
def test_what_the_json_module_writes_is_read_as_it_was(pairs, ascii_only):
    lines = [json.dumps({"candidate": one, "references": more}, ensure_ascii=ascii_only) for one, more in pairs]
    source = Source("pairs", io.BytesIO("\n".join(lines).encode()))
    rows = read_json_lines(source, [candidate_column(), *reference_columns()])
    assert list(rows) == [[one, *more] for one, more in pairs]
