"""Lists of references in cells of text: what was written, by `score -o` or by pandas, is read as it was."""

import json

import numpy as np
import pandas as pd
import pytest

from bertscore_onnx.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:.* because a side is empty:UserWarning")
SAID = "The column 'reference' holds texts that are lists of texts; each of them is read as a list"
unsaid = pytest.mark.filterwarnings("ignore:.* is read as a list:UserWarning")

ROWS = [
    ("the cat sat on the mat", ["a dog"]),
    ('a "red", house; [it]', ["the cat's mat", 'a "blue" house', "it, or\nnot\t\\n"]),
    ("a dog ran", ["", "the dog", "ein Hündchen 😀 \u2028", "['a']", "a dog ran"]),
    ("the house", ['["the house"]', "\r\n"]),
    ("a tree", ["a red tree"]),
]
LISTS = [references for _, references in ROWS]


@pytest.fixture(scope="module")
def expected(scorer):
    return scorer.score([candidate for candidate, _ in ROWS], LISTS)


@pytest.fixture
def scored(run, tiny_bundle):
    def scored(file, *arguments):
        result = run("score", "-m", tiny_bundle, "-c", file, "--format", "jsonl", "-s", *arguments)
        assert result.exit_code == 0, result.stderr
        return [json.loads(line)["f1"] for line in result.stdout.splitlines()], result.stderr

    return scored


WRITERS = {
    "csv": lambda frame, file: frame.to_csv(file, index=False),
    "tsv": lambda frame, file: frame.to_csv(file, index=False, sep="\t"),
    "parquet": lambda frame, file: frame.to_parquet(file),
    "jsonl": lambda frame, file: frame.to_json(file, orient="records", lines=True),
}


@pytest.mark.filterwarnings("always::UserWarning")
@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("kind", ["list", "array", "json"])
def test_what_pandas_writes_is_read(scored, tmp_path, expected, suffix, kind):
    references = pd.Series(LISTS)
    if kind == "array":
        references = references.map(lambda texts: pd.Series(texts, dtype=object).to_numpy())
    if kind == "json":
        references = references.map(json.dumps)
    file = tmp_path / f"in.{suffix}"
    WRITERS[suffix](pd.DataFrame({"candidate": [candidate for candidate, _ in ROWS], "reference": references}), file)
    scores, said = scored(file)
    assert scores == expected.F.tolist()
    is_text = kind == "json" or suffix in ("csv", "tsv")
    assert said.count(SAID) == is_text


@unsaid
@pytest.mark.parametrize("first", WRITERS)
@pytest.mark.parametrize("second", WRITERS)
def test_what_was_written_has_the_same_scores(run, scored, tiny_bundle, tmp_path, expected, first, second):
    references = LISTS if first in ("jsonl", "parquet") else [*map(json.dumps, LISTS)]
    files = tmp_path / f"one.{first}", tmp_path / f"two.{second}"
    WRITERS[first](pd.DataFrame({"candidate": [candidate for candidate, _ in ROWS], "reference": references}), files[0])
    written = run("score", "-m", tiny_bundle, "-c", files[0], "-o", files[1])
    assert written.exit_code == 0, written.stderr
    assert scored(files[1])[0] == expected.F.tolist()


@pytest.mark.parametrize(
    "cell",
    [
        "('a tree', 'a red tree')",
        repr(np.array(["a tree", "a red tree"], dtype=object)),
        repr(np.array(["a tree", "a red tree"])),
        str(np.array(["a tree", "a red tree"])),
    ],
)
def test_other_prints_of_lists_are_read(scorer, cell):
    expected = scorer.score(["a tree"], [["a tree", "a red tree"]]).F
    with pytest.warns(UserWarning, match="is read as a list"):
        assert scorer.score_frame({"candidate": ["a tree"], "reference": [cell]})["f1"] == expected


@pytest.mark.parametrize(
    "cell",
    [
        *("[['a', 'b']]", '[["a"], ["b"]]', "[('a', 'b')]", "['a' 'b' ... 'z']", "{'a', 'b'}", "array([['a', 'b']])"),
        str(pd.Series(["a", "b"])),
    ],
)
def test_lists_that_cannot_be_read_are_refused(scorer, cell):
    with pytest.raises(InputError, match=r"row 0: the column 'reference' holds .*list of lists, a set, a Series"):
        scorer.score_frame({"candidate": ["a tree"], "reference": [cell]})


@pytest.mark.parametrize(
    "text", ["('yes')", "[applause] (and) [laughter]", "[1, 2]", "['a' and 'b']", "0 \ndtype: a b"]
)
def test_a_text_in_brackets_stays_one(scorer, text):
    assert scorer.score_frame({"candidate": [text], "reference": [text]})["f1"] == pytest.approx(1)


@pytest.mark.filterwarnings("error:.*score 0:UserWarning")
def test_frames_with_other_lists_are_read(scorer):
    frame = pd.DataFrame({"candidate": ["a tree"] * 3, "reference": [pd.Series(["a tree", ""]), ("a", "tree"), "a"]})
    expected = scorer.score(["a tree"] * 3, [["a tree", ""], ["a", "tree"], "a"])
    assert scorer.score_frame(frame)["f1"].tolist() == expected.F.tolist()
    with pytest.raises(InputError, match=r"a list with null in it.*Leave the row out"):
        scorer.score_frame({"candidate": ["a"], "reference": [["a", float("nan")]]})


def test_series_of_the_same_labels_in_another_order_are_refused(scorer):
    candidates, references = pd.Series(["a", "b"]), pd.Series(["a", "b"])
    with pytest.raises(InputError, match="labels of cands in another order"):
        scorer.score(candidates, references[::-1])
    with pytest.raises(InputError, match="contexts has the labels"):
        scorer.score(candidates, references, contexts=references[::-1])
    expected = scorer.score([*candidates], [*references]).F.tolist()
    for others in (references, references.set_axis(["x", "y"]), [*references]):
        assert scorer.score(candidates, others).F.tolist() == expected


@unsaid
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0)])
def test_a_cell_is_read_alike_whatever_the_others_hold(scorer, order):
    cells = ["a dog", '["a", "the"]', "[1]", '["a"', '[{"a": 1}]']
    candidates, expected = ["a dog"] * 5, ["a dog", ["a", "the"], "[1]", '["a"', '[{"a": 1}]']
    scored = scorer.score_frame({"candidate": candidates, "reference": [cells[row] for row in order]})
    assert scored["f1"].tolist() == scorer.score(candidates, [expected[row] for row in order]).F.tolist()


@unsaid
@pytest.mark.parametrize(
    ("cell", "held"),
    [
        *((cell, "a list with null in it") for cell in ('["a", null]', "['a', None]", "['a', nan]")),
        ("[]", "an empty list"),
    ],
)
def test_a_list_that_lacks_a_text_is_refused(scorer, cell, held):
    with pytest.raises(InputError, match=f"row 1: the column 'reference' holds {held}"):
        scorer.score_frame({"candidate": ["a", "a"], "reference": ['["a"]', cell]})


@unsaid
@pytest.mark.filterwarnings("ignore:2 texts have an empty context:UserWarning")
def test_contexts_are_lists_too(scorer):
    columns = {"candidate": ["a dog", "it"], "reference": ["the dog", "a"], "context": ['["the cat", "a mat"]', "[]"]}
    lists = columns | {"context": [["the cat", "a mat"], []]}
    scores = [scorer.score_frame(given, context="context")["f1"].tolist() for given in (columns, lists)]
    assert scores[0] == scores[1]
