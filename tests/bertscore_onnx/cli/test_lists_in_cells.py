"""Lists of references in cells: true lists are read in every format that has them, and printed
lists are refused.
"""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import TextColumn

pytestmark = pytest.mark.filterwarnings("ignore:.* because a side is empty:UserWarning")

ROWS = [
    ("the cat sat on the mat", ["a dog"]),
    ('a "red", house; [it]', ["the cat's mat", 'a "blue" house', "it, or\nnot\t\\n"]),
    ("a dog ran", ["", "the dog", "ein Hündchen 😀 \u2028", "['a']", "a dog ran"]),
    ("the house", ['["the house"]', "\r\n"]),
    ("a tree", ["a red tree"]),
]
CANDIDATES = [candidate for candidate, _ in ROWS]
LISTS = [references for _, references in ROWS]


@pytest.fixture(scope="module")
def expected(scorer):
    return scorer.score(CANDIDATES, LISTS).F.tolist()


@pytest.fixture
def scored(run_score):
    def scored(file, *arguments):
        result = run_score("-c", file, "--format", "jsonl", "-s", *arguments)
        assert result.exit_code == 0, result.stderr
        return [json.loads(line)["f1"] for line in result.stdout.splitlines()]

    return scored


WRITERS = {
    "parquet": lambda frame, file: frame.to_parquet(file),
    "jsonl": lambda frame, file: frame.to_json(file, orient="records", lines=True),
}


@pytest.mark.parametrize("first", WRITERS)
@pytest.mark.parametrize("second", WRITERS)
@pytest.mark.parametrize("kind", [list, np.array])
def test_lists_in_files_are_read_as_pandas_and_score_write_them(
    run_score, scored, tmp_path, expected, first, second, kind
):
    file, written = tmp_path / f"one.{first}", tmp_path / f"two.{second}"
    references = [kind(texts) for texts in LISTS]
    WRITERS[first](pd.DataFrame({"candidate": CANDIDATES, "reference": references}), file)
    assert scored(file) == expected
    assert run_score("-c", file, "-o", written).exit_code == 0
    assert scored(written) == expected


REFERENCES = TextColumn(("reference",), "", may_hold_lists=True)
PIECES = [
    "the cat's",
    'a "red" house',
    "[1]",
    "é😀",
    "\n",
    "\\",
    "', '",
    "']",
    "None",
    "array([",
    "",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=9), max_size=4).map(" ".join)
PRINTS = {
    "str": str,
    "json": json.dumps,
    "json in lines": lambda texts: json.dumps(texts, indent=2, ensure_ascii=False),
    "str of an array": lambda texts: str(np.array(texts, dtype=str)),
    "repr of an array": lambda texts: repr(np.array(texts, dtype=str)),
    "repr of objects": lambda texts: repr(np.array([*texts, None], dtype=object)[:-1]),
    "list of an array": lambda texts: str([*np.array(texts, dtype=str)]),
    "with a null": lambda texts: str([*texts, None]),
    "list of lists": lambda texts: f"  {[texts, texts]}\n",
    "Series": lambda texts: str(pd.Series(["a", *texts], name="gold")),
    "Series without a name": lambda texts: str(pd.Series(["a", *texts])),
}


@pytest.mark.parametrize("kind", PRINTS)
@given(texts=st.lists(TEXTS, max_size=5))
def test_a_printed_list_is_refused(kind, texts):
    with pytest.raises(
        InputError,
        match=r"row 0: the column 'reference' holds .* printed list.* JSON lines .*=r1\+r2",
    ):
        REFERENCES.texts_of(PRINTS[kind](texts), "row 0")


WORDS = st.sampled_from(
    ["the cat's", '"red"', "\n", ",", "None", "[laughs]", "['a']", '["a", "b"]', "[]", "dtype: str"]
)


@given(
    st.lists(WORDS, max_size=5), st.sampled_from(["and", "[1]", "(x)"]), st.lists(WORDS, max_size=5)
)
def test_a_text_with_a_word_outside_of_quotes_is_no_printed_list(before, word, after):
    text = " ".join([*before, word, *after])
    assert REFERENCES.texts_of(text, "row 0") == [text]


@pytest.mark.parametrize(
    "text",
    [
        "[1] See the appendix [2]",
        "[1, 2]",
        "('yes')",
        "['a' and 'b']",
        '["Smith"] shows it, ["Lee"]',
        "['a'] b",
    ],
)
def test_a_text_in_brackets_stays_one(scorer, text):
    assert scorer.score_frame({"candidate": [text], "reference": [text]})["f1"] == pytest.approx(1)


def test_a_candidate_and_a_text_of_a_list_are_never_printed_lists(scorer):
    frame = {"candidate": ["['a']", "the cat"], "reference": [["['a']"], "['a']"]}
    scored = scorer.score_frame(frame, errors="null")
    assert scored["f1"].tolist() == [pytest.approx(1), None]
    assert "printed list" in scored["error"][1]


@pytest.mark.parametrize("column", ["reference", "context"])
def test_a_printed_list_in_a_file_is_refused_with_its_line(refused, tiny_bundle, write, column):
    cells = {"candidate": "a dog", "reference": "the dog", "context": "it"} | {column: "['a', 'b']"}
    file = write("in.tsv", "\t".join(cells) + "\n" + "\t".join(cells.values()) + "\n")
    said = refused("score", "-m", tiny_bundle, "-c", file, "--context", file)
    assert f"in.tsv, line 2: the column '{column}' holds" in said
    assert "printed list" in said


@pytest.mark.filterwarnings("error:.*score 0:UserWarning")
def test_frames_with_other_lists_are_read(scorer):
    frame = pd.DataFrame(
        {"candidate": ["a tree"] * 3, "reference": [pd.Series(["a tree", ""]), ("a", "tree"), "a"]}
    )
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


@pytest.mark.filterwarnings("ignore:2 texts have an empty context:UserWarning")
def test_contexts_are_lists_too(scorer):
    columns = {
        "candidate": ["a dog", "it"],
        "reference": ["the dog", "a"],
        "context": [["the cat", "a mat"], []],
    }
    expected = scorer.score(columns["candidate"], columns["reference"], contexts=columns["context"])
    assert scorer.score_frame(columns, context="context")["f1"].tolist() == expected.F.tolist()
