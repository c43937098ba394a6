import json
import re

import numpy as np
import pytest

from bertscore_onnx.scorer import BERTScorer
from tests.support.eval_sets import BLEU, HUMAN, write

FEW = ("--resamples", "20")


@pytest.fixture
def table(tmp_path):
    """Write a table and return its path; by default the judgements of the small set, and its scores
    of BLEU.
    """

    def write_table(rows=None, name="judgements.tsv", header="lang_pair system segment human BLEU"):
        if rows is None:
            rows = [
                (
                    "he-en",
                    system,
                    str(segment),
                    "" if human is None else str(human),
                    str(BLEU[system][segment]),
                )
                for system, row in HUMAN.items()
                for segment, human in enumerate(row)
            ]
        lines = ["\t".join(header.split()), *("\t".join(row) for row in rows)]
        return write(tmp_path, name, "\n".join(lines) + "\n")

    return write_table


@pytest.fixture
def judged(run_json):
    def judged(*arguments, stdin=None):
        return run_json("meta", *arguments, *FEW, stdin=stdin)["language_pairs"]

    return judged


def test_judges_the_scores_of_a_table_also_through_a_pipe(judged, table):
    path = table()
    found = judged(path, "--score", "BLEU")
    metric = found["he-en"]["metrics"]["BLEU"]
    cells = [(HUMAN[system][at], BLEU[system][at]) for system in HUMAN for at in (0, 1, 2, 4)]
    assert metric["segment"]["pearson"] == pytest.approx(np.corrcoef(np.array(cells).T)[0, 1])
    of_systems = np.corrcoef([-2, -0.5, -4.5, -2.5, 0], [24.2, 33.2, 18.2, 29, 40])[0, 1]
    assert metric["system"]["pearson"] == pytest.approx(of_systems)
    assert (metric["system"]["n"], metric["segment"]["n"]) == (5, 20)
    assert metric["segment"]["ranks"] == {}
    options = ("--input-format", "csv,delimiter=tab", "--score", "BLEU")
    assert judged("-", *options, stdin=path.read_text()) == found


def test_lower_scores_may_be_better(judged, refused, table):
    negative = [(*row[:5], f"-{row[5]}") for row in JUDGED]
    expected = judged(table(JUDGED, header=HEADER), "--score", "BLEU")["a-b"]["metrics"]["BLEU"]
    path = table(negative, header=HEADER)
    found = judged(path, "--score", "BLEU", "--lower-better", "BLEU")["a-b"]["metrics"]["BLEU"]
    assert found == {**expected, "signature": "negative:yes"}
    assert judged(path, "--score", "BLEU")["a-b"]["reversed"] == ["BLEU"]
    message = refused("meta", path, "--score", "BLEU", "--lower-better", "BLUE")
    assert (
        "--lower-better: no scores are called 'BLUE'; there are BLEU. Did you mean 'BLEU'?"
        in message
    )


JUDGED = [
    (
        "a-b",
        system,
        f"talk-{segment}",
        f"d{segment // 2}",
        str(segment % 5 + human),
        f"{human + segment / 7:.3f}",
    )
    for segment in range(20)
    for system, human in (("A", 0.1), ("B", 0.2), ("C", 0.4))
]
HEADER = "lang_pair system segment document human BLEU"


@pytest.mark.parametrize("name", ["id", "Seg_ID", "LINE"])
def test_ids_have_the_names_that_they_have_everywhere(judged, table, name):
    expected = judged(table(JUDGED, header=HEADER), "--score", "BLEU")
    path = table(JUDGED, header=HEADER.replace("segment", name).replace("document", "Doc"))
    assert judged(path, "--score", "BLEU") == expected


def test_rows_of_one_segment_name_one_document(refused, table):
    rows = [*JUDGED[:-1], (*JUDGED[-1][:3], "d0", *JUDGED[-1][4:])]
    stderr = refused("meta", table(rows, header=HEADER), "--score", "BLEU")
    assert "line 61: the document is 'd0', but 'd9' in" in stderr


def test_a_segment_without_a_score_is_named_or_left_out(run, judged, refused, table):
    rows = [*JUDGED[:-1], (*JUDGED[-1][:5], "")]
    error = refused("meta", table(rows, header=HEADER), "--score", "BLEU")
    assert "line 61: the column 'BLEU' holds no score" in error
    assert "for all systems with --missing drop." in error
    found = judged(table(rows, header=HEADER), "--score", "BLEU", "--missing", "drop")["a-b"]
    expected = judged(table(JUDGED[:-3], header=HEADER), "--score", "BLEU")["a-b"]
    assert found["notes"][0].startswith("1 segment left out")
    assert found["metrics"] == expected["metrics"]
    assert (
        "left out talk-19"
        in run("meta", table(rows, header=HEADER), "--score", "BLEU", "--missing", "drop").stderr
    )


def test_documents_of_a_column_are_the_units(judged, table):
    rows = [("a-b", s, str(g), f"d{g // 2}", str(g % 3), str(g)) for s in "AB" for g in range(24)]
    path = table(rows, header="lang_pair system segment topic human BLEU")
    of_column = judged(path, "--columns", "document=topic", "--score", "BLEU")["a-b"]
    assert (of_column["units"], of_column["notes"][-1][:15]) == ("documents", "12 documents ar")
    assert judged(path, "--score", "BLEU")["a-b"]["units"] == "segments"
    with_blank = [(*row[:3], "", *row[3:]) for row in rows]
    path = table(with_blank, header="lang_pair system segment document document_id human BLEU")
    assert judged(path, "--score", "BLEU")["a-b"] == of_column


def test_columns_may_have_other_names(judged, table):
    header = "LP name item judged BLEU"
    path = table(
        [("a-b", s, g, h, "1" + h) for s in "AB" for g, h in (("1", "5"), ("2", "3"))],
        header=header,
    )
    columns = ("--columns", "lang_pair=LP", "system=name", "segment=item", "human=judged")
    found = judged(path, *columns, "--score", "BLEU")
    assert found["a-b"]["metrics"]["BLEU"]["segment"]["n"] == 4


def test_systems_may_have_no_name_throughout(judged, table):
    path = table([("a-b", "", str(at), str(at % 3), str(at)) for at in range(6)])
    metric = judged(path, "--score", "BLEU")["a-b"]["metrics"]["BLEU"]
    assert (metric["system"]["n"], metric["segment"]["n"]) == (1, 6)
    assert metric["segment"]["pearson"] is not None


def test_only_the_language_pairs_that_are_named_are_judged(judged, table):
    rows = [
        (pair, system, "1", h, h)
        for pair in ("a-b", "b-a", "c-a")
        for system, h in (("A", "1"), ("B", "2"))
    ]
    assert [*judged(table(rows), "--score", "BLEU", "--language-pair", "c-a", "a-b")] == [
        "c-a",
        "a-b",
    ]


def test_texts_of_a_table_are_scored(judged, tmp_path, tiny_bundle):
    references = {1: ["the A 1", "a B 1"], 2: "the A 2"}
    columns = ("lang_pair", "system", "segment", "human", "candidate", "reference")
    rows = [
        ("a-b", s, g, g + (s == "A"), f"the {s} {g}", texts)
        for s in "ABC"
        for g, texts in references.items()
    ]
    lines = [json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows]
    path = write(tmp_path, "texts.jsonl", "".join(lines))
    found = judged(path, "-m", tiny_bundle, "--metric", "ter", "chrf")["a-b"]
    assert found["metrics"].keys() == {"bertscore", "ter", "chrf"}
    first, *others = found["metric_scores"]["ter"]
    assert first == 0 > max(others)
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        expected = scorer.score(["the B 1", "the B 2"], list(references.values())).F
    assert found["metric_scores"]["bertscore"][1] == pytest.approx(expected.mean(), abs=1e-6)


def test_prints_a_table_or_tsv(run, table, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    arguments = ("meta", table(), "--score", "BLEU", *FEW)
    text = run(*arguments).stdout
    assert text.startswith(
        "No metric is ranked: 4 segments judged for two systems or more, and it takes 20."
    )
    assert "\nhe-en: 5 systems, 4 segments\n" in text
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert run(*arguments, "--format", "tsv").stdout.startswith(
        "lang_pair\tmetric\tkind\tsystem_n\t"
    )


def test_a_folder_is_refused_with_the_command_that_makes_its_table(refused, tmp_path):
    assert "is a folder; expected a table. Name a table." in refused(
        "meta", tmp_path, "--score", "BLEU"
    )
    (tmp_path / "human-scores").mkdir()
    message = refused("meta", tmp_path, "--score", "BLEU")
    assert f"python -m reproduce.wmt {tmp_path} > judgements.tsv" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "name columns of scores, --score COLUMN, or score the texts"),
        (("--metric", "bertscore"), "name a model"),
        (("--metric", "blue"), "'blue' is none of bertscore, bleu, chrf, ter"),
        (
            ("--score", "BLEU", "--language-pair", "en-de"),
            "no rows of the language pair 'en-de'; it has he-en",
        ),
    ],
)
def test_options_that_do_not_fit_a_table_are_refused(refused, table, options, message):
    assert message in refused("meta", table(), *options)


ROW = ("a", "A", "1", "1", "1")
OF_SEGMENTS = "lang_pair system segment human BLEU"


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (
            "lang_pair system segment humans BLEU",
            [ROW],
            "no column 'human' or 'human_score', .* Did you mean 'humans'",
        ),
        (
            OF_SEGMENTS,
            [("a", "A", "1", "1", "")],
            "line 2: the column 'BLEU' holds no score, but 'human' a judgement",
        ),
        (
            OF_SEGMENTS,
            [ROW, ("a", "B", *ROW[2:]), ROW],
            "line 4: the system 'A' occurs a second time for segment '1'",
        ),
        (OF_SEGMENTS, [("a", "A", "1", "", "1")], "none of the 1 systems has a human score"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(refused, table, header, rows, message):
    assert re.search(message, refused("meta", table(rows, header=header), "--score", "BLEU"))


def test_scores_of_one_name_texts_without_segments_and_a_missing_source_are_refused(
    refused, table, tmp_path
):
    twice = table(
        [("a", "A", "1", "1", "1", "x", "y")],
        header="lang_pair system segment human bleu candidate reference",
    )
    assert "scores called 'bleu' exist already" in refused(
        "meta", twice, "--score", "bleu", "--metric", "bleu"
    )
    whole = table([("a", "A", "1", "x", "y")], header="lang_pair system human candidate reference")
    error = refused("meta", whole, "--score", "human")
    assert "no column of segments" in error
    assert "`pandas.DataFrame.corr`" in error
    assert "No such file or directory" in refused("meta", tmp_path / "nothing", "--score", "BLEU")


# Sentinels and annotators.


@pytest.fixture
def annotated():
    """Rows of four systems and six segments with texts, judged by two annotators, of whom B left
    some out.
    """
    rng = np.random.default_rng(3)
    words = "the cat sat on a mat with red dogs".split()  # noqa: SIM905
    rows = []
    for segment in range(6):
        reference = " ".join(rng.choice(words, 6))
        for system in range(4):
            candidate = " ".join(
                word if rng.random() < 0.3 + 0.2 * system else "no" for word in reference.split()
            )
            score = f"{system + rng.normal():.3f}"
            for annotator in "AB":
                human = f"{system + rng.normal():.1f}" if annotator == "A" or segment else ""
                rows.append(
                    (
                        "de-en",
                        f"S{system}",
                        f"{segment}",
                        candidate,
                        reference,
                        score,
                        annotator,
                        human,
                    )
                )
    return rows


ANNOTATED = "lang_pair system segment candidate reference m annotator human"


def test_the_order_of_annotators_changes_nothing(judged, table, annotated):
    found = judged(table(annotated, header=ANNOTATED), "--score", "m")
    assert {"sentinel-length", "sentinel-overlap"} <= found["de-en"]["sentinels"].keys()
    shuffled = [annotated[at] for at in np.random.default_rng(0).permutation(len(annotated))]
    assert judged(table(shuffled, header=ANNOTATED), "--score", "m") == found


def test_an_empty_annotator_is_a_null(judged, table, annotated):
    unnamed = [
        (*row[:6], "" if at in (2, 11) else row[6], row[7]) for at, row in enumerate(annotated)
    ]
    found = judged(table(unnamed, header=ANNOTATED), "--score", "m")
    rows = [
        dict(zip(ANNOTATED.split(), [value or None for value in row], strict=True))
        for row in unnamed
    ]
    path = write(table(unnamed).parent, "t.jsonl", "\n".join(map(json.dumps, rows)))
    assert judged(path, "--score", "m") == found


def test_several_annotators_are_averaged_and_reported(run, judged, table, annotated):
    path = table(annotated, header=ANNOTATED)
    stderr = run("meta", path, "--score", "m", *FEW).stderr
    assert "means over the 2 annotators in the column 'annotator'." in stderr
    human = judged(path, "--score", "m")["de-en"]
    means = [
        (row[-1], annotated[at + 1][-1], float(row[5]))
        for at, row in enumerate(annotated)
        if row[-2] == "A"
    ]
    pairs = [(np.mean([float(one) for one in (a, b) if one]), m) for a, b, m in means]
    assert human["metrics"]["m"]["segment"]["pearson"] == pytest.approx(
        np.corrcoef(*zip(*pairs, strict=True))[0, 1]
    )


def test_sentinels_can_be_left_out(judged, table, annotated):
    path = table(annotated, header=ANNOTATED)
    assert judged(path, "--score", "m", "--no-sentinels")["de-en"]["sentinels"] == {}
    without_reference = table(
        [(*row[:4], *row[5:]) for row in annotated], header=ANNOTATED.replace(" reference", "")
    )
    assert [*judged(without_reference, "--score", "m")["de-en"]["sentinels"]] == [
        "sentinel-random",
        "sentinel-segment",
    ]


@pytest.fixture
def write_as(tmp_path):
    """Write rows of texts, None for an empty cell or null, as a table of a format, and return its
    path.
    """

    def write_as(rows, format_):
        names = ANNOTATED.split()
        if format_ == "jsonl":
            lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        else:
            lines = [",".join(names), *(",".join(cell or "" for cell in row) for row in rows)]
        return write(tmp_path, f"t.{format_}", "\n".join(lines) + "\n")

    return write_as


def changed(rows, at, **values):
    row = [values.get(name, cell) for name, cell in zip(ANNOTATED.split(), rows[at], strict=True)]
    return [*rows[:at], row, *rows[at + 1 :]]


@pytest.mark.parametrize("missing", [["candidate"], ["reference"], ["candidate", "reference"]])
def test_an_unjudged_output_needs_no_texts(judged, write_as, annotated, missing):
    rows = [row for row in annotated if row[-2] == "A"]
    without = changed(rows, 5, human=None, m=None, **dict.fromkeys(missing))
    for options in (["--score", "m"], ["--metric", "chrf"]):
        expected = judged(write_as([*rows[:5], *rows[6:]], "csv"), *options)
        assert len(expected["de-en"]["sentinels"]) == 5
        for format_ in ("csv", "jsonl"):
            assert judged(write_as(without, format_), *options) == expected


def test_the_texts_of_an_output_may_stand_with_one_annotator(judged, write_as, annotated):
    expected = judged(write_as(annotated, "jsonl"), "--score", "m")
    assert len(expected["de-en"]["sentinels"]) == 5
    for at in (10, 11):
        assert (
            judged(write_as(changed(annotated, at, candidate=None), "jsonl"), "--score", "m")
            == expected
        )
    unjudged = judged(write_as(changed(annotated, 11, human=None), "csv"), "--score", "m")
    assert (
        judged(write_as(changed(annotated, 11, human=None, candidate=None), "csv"), "--score", "m")
        == unjudged
    )


def test_another_text_of_the_same_output_is_refused_whoever_lacks_it(refused, write_as, annotated):
    rows = [
        *changed(annotated, 10, candidate=None),
        [*annotated[10][:3], "other", *annotated[10][4:6], "C", "1"],
    ]
    message = refused("meta", write_as(rows, "jsonl"), "--score", "m")
    assert "line 49: this judges the same output as" in message
    assert "line 12, but has another text" in message


@pytest.mark.parametrize(
    ("format_", "missing"), [("csv", "reference"), ("jsonl", "reference"), ("jsonl", "candidate")]
)
def test_a_note_says_why_there_are_no_sentinels_of_texts(
    judged, write_as, annotated, format_, missing
):
    path = write_as(
        changed([row for row in annotated if row[-2] == "A"], 5, **{missing: None}), format_
    )
    found = judged(path, "--score", "m")["de-en"]
    assert [*found["sentinels"]] == ["sentinel-random", "sentinel-segment"]
    note = (
        "left out sentinel-length, sentinel-ratio and sentinel-overlap: 1 of 24 judged outputs "
        "have no text, or no reference"
    )
    assert note in found["notes"]


@pytest.mark.parametrize("column", ["candidate", "reference"])
def test_an_empty_text_that_was_judged_is_scored(judged, write_as, annotated, column):
    rows = changed([row for row in annotated if row[-2] == "A"], 5, **{column: ""})
    found = [judged(write_as(rows, format_), "--metric", "chrf") for format_ in ("csv", "jsonl")]
    assert found[0] == found[1]
    assert found[0]["de-en"]["metrics"]["chrf"]["segment"]["n"] == 24
    assert "sentinel-overlap" in found[0]["de-en"]["sentinels"]


def test_a_text_that_is_none_is_named_where_only_sentinels_read_it(run, write_as, annotated):
    rows = changed([row for row in annotated if row[-2] == "A"], 5, candidate=42)
    result = run("meta", write_as(rows, "jsonl"), "--score", "m", *FEW)
    assert "Sentinels of texts are left out. " in result.stderr
    assert "line 6: the column 'candidate' holds a number" in result.stderr
    assert "have no text, or no reference" in result.stdout


def test_a_column_of_texts_that_was_named_has_to_exist(refused, write_as, annotated):
    path = write_as(annotated, "csv")
    message = refused("meta", path, "--score", "m", "--columns", "reference=refs")
    assert "'refs'" in message
    assert "Name one with --columns reference=NAME" in message
