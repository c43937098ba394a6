"""`bertscore-onnx meta`: the correlation of metrics with people."""

import json
from pathlib import Path

import numpy as np
import pytest
import sacrebleu

from bertscore_onnx.scorer import BERTScorer
from tests.support.eval_sets import BLEU, HUMAN, score_lines, write, write_eval_set
from tests.support.metaeval import FOLDER, needs_metaeval

FEW = ("--perm-both", "20")


@pytest.fixture
def eval_set(tmp_path):
    return write_eval_set(tmp_path / "set")


@pytest.fixture
def table(tmp_path):
    """Write a table and return its path; by default the judgements of the small set, and its scores of BLEU."""

    def write_table(rows=None, name="judgements.tsv", header="lang_pair system segment human BLEU"):
        if rows is None:
            rows = [
                ("he-en", system, str(segment), "" if human is None else str(human), str(BLEU[system][segment]))
                for system, row in HUMAN.items()
                for segment, human in enumerate(row)
            ]
        lines = ["\t".join(header.split()), *("\t".join(row) for row in rows)]
        return write(tmp_path, name, "\n".join(lines) + "\n")

    return write_table


def record(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["language_pairs"]


def test_judges_the_scores_of_a_set(run, eval_set):
    options = ["--language-pair", "he-en", "--gold", "mqm", "--reference", "refB", "--metric-scores", "BLEU-refB"]
    found = record(run("meta", eval_set, *options, "--json", *FEW))
    metric = found["he-en"]["metrics"]["BLEU-refB"]
    human, bleu = ([HUMAN, BLEU][side] for side in range(2))
    cells = [(human[system][at], bleu[system][at]) for system in human for at in (0, 1, 2, 4)]
    assert metric["segment"]["pearson"] == pytest.approx(np.corrcoef(np.array(cells).T)[0, 1])
    assert metric["system"]["pearson"] == pytest.approx(
        np.corrcoef([-2, -0.5, -4.5, -2.5, 0], [24, 35, 19, 29, 36])[0, 1]
    )
    assert (metric["system"]["n"], metric["segment"]["n"], metric["rank"]) == (5, 20, 1)


def test_a_table_gives_what_the_set_gives(run, eval_set, table):
    (eval_set / "metric-scores/he-en/BLEU-refB.sys.score").unlink()
    of_set = record(run("meta", eval_set, "--metric-scores", "BLEU-refB", "--json", *FEW))
    of_table = record(run("meta", table(), "--score", "BLEU", "--json", *FEW))
    assert of_table["he-en"]["metrics"]["BLEU"] == of_set["he-en"]["metrics"]["BLEU-refB"]


def test_numbered_segments_are_in_order_wherever_their_rows_stand(run, table, tmp_path):
    rows = [("a-b", system, str(g), str(g % 4 * len(system)), str(g)) for system in ("A", "BB") for g in range(12)]
    options = ("--score", "BLEU", "--json", *FEW)
    whole = record(run("meta", table(rows), *options))
    assert record(run("meta", table(rows[::-1]), *options, "--output", tmp_path / "out")) == whole
    lines = (tmp_path / "out/metric-scores/a-b/BLEU-all.seg.score").read_text().splitlines()
    assert lines == [f"{system}\t{g}.0" for system in ("A", "BB") for g in range(12)]


def test_a_row_may_be_a_whole_system(run, table):
    rows = [("de-en", name, human, bleu) for name, human, bleu in (("A", "1", "2"), ("B", "2", "3"), ("C", "4", "4"))]
    found = record(run("meta", table(rows, header="lang_pair system human BLEU"), "--score", "BLEU", "--json"))
    metric = found["de-en"]["metrics"]["BLEU"]
    assert metric["segment"] is None
    assert metric["system"]["pearson"] == pytest.approx(np.corrcoef([1, 2, 4], [2, 3, 4])[0, 1])
    assert metric["system"]["reasons"]["spa"] == "only whole systems have human scores, and it takes segments"


def test_columns_may_have_other_names(run, table):
    header = "LP name item judged BLEU"
    path = table([("a-b", s, g, h, "1" + h) for s in "AB" for g, h in (("1", "5"), ("2", "3"))], header=header)
    columns = ("--language-pair-column", "LP", "--system-column", "name", "--segment-column", "item")
    found = record(run("meta", path, *columns, "--human-column", "judged", "--score", "BLEU", "--json", *FEW))
    assert found["a-b"]["metrics"]["BLEU"]["segment"]["n"] == 4


def test_a_table_without_language_pairs_takes_the_one_that_is_named(run, table):
    path = table([("A", "1", "2"), ("B", "2", "3"), ("C", "4", "4")], header="system human BLEU")
    assert record(run("meta", path, "--language-pair", "de-en", "--score", "BLEU", "--json")).keys() == {"de-en"}


def test_systems_may_have_no_name_throughout(run, table):
    path = table([("a-b", "", str(at), str(at % 3), str(at)) for at in range(6)])
    metric = record(run("meta", path, "--score", "BLEU", "--json"))["a-b"]["metrics"]["BLEU"]
    assert (metric["system"]["n"], metric["segment"]["n"]) == (1, 6)
    assert metric["segment"]["pearson"] is not None


def test_only_the_language_pairs_that_are_named_are_judged(run, table):
    rows = [(pair, system, "1", h, h) for pair in ("a-b", "b-a", "c-a") for system, h in (("A", "1"), ("B", "2"))]
    path = table(rows)
    found = record(run("meta", path, "--score", "BLEU", "--json", "--language-pair", "c-a", "a-b"))
    assert [*found] == ["c-a", "a-b"]


def test_texts_of_a_set_are_scored_and_their_scores_written(run, eval_set, tiny_bundle, tmp_path):
    out = tmp_path / "out"
    options = ["--model", tiny_bundle, "--device", "cpu", "--metric", "bleu", "--output", out, "--json", *FEW]
    metrics = record(run("meta", eval_set, *options))["he-en"]["metrics"]
    assert metrics.keys() == {"BLEU-refB", "chrF-refB", "bertscore-refB", "bleu-refB"}
    folder = out / "metric-scores" / "he-en"
    assert sorted(file.name for file in folder.iterdir()) == [
        f"{metric}-refB.{level}.score" for metric in ("bertscore", "bleu") for level in ("seg", "sys")
    ]
    candidates = (eval_set / "system-outputs/he-en/C.txt").read_text().splitlines()
    references = (eval_set / "references/he-en.refB.txt").read_text().splitlines()
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        expected = scorer.score(candidates, references).F
    lines = [line.split() for line in (folder / "bertscore-refB.seg.score").read_text().splitlines()]
    np.testing.assert_allclose([float(score) for system, score in lines if system == "C"], expected, atol=1e-6)
    of_systems = dict(line.split() for line in (folder / "bleu-refB.sys.score").read_text().splitlines())
    assert float(of_systems["C"]) == pytest.approx(sacrebleu.corpus_bleu(candidates, [references]).score)
    assert of_systems.keys() == {"A", "B", "C", "D", "refA"}


def test_written_scores_are_read_again_and_judged_alike(run, eval_set, tmp_path):
    first = record(run("meta", eval_set, "--metric", "chrf", "--output", eval_set, "--json", *FEW))
    again = record(run("meta", eval_set, "--metric-scores", "chrf-refB", "--json", *FEW))
    metrics = [found["he-en"]["metrics"]["chrf-refB"]["segment"] for found in (first, again)]
    assert metrics[0]["pearson"] == metrics[1]["pearson"]


def test_texts_of_a_table_are_scored(run, tmp_path, tiny_bundle):
    rows = [
        {
            "lang_pair": "a-b",
            "system": s,
            "segment": g,
            "human": g + (s == "A"),
            "candidate": f"the {s} {g}",
            "reference": r,
        }
        for s in "ABC"
        for g, r in ((1, ["the A 1", "a B 1"]), (2, "the A 2"))
    ]
    path = write(tmp_path, "texts.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    metrics = record(run("meta", path, "-m", tiny_bundle, "--metric", "ter", "chrf", "-o", out, "--json", *FEW))["a-b"]
    assert metrics["metrics"].keys() == {"bertscore", "ter", "chrf"}
    lines = (out / "metric-scores/a-b/ter-all.seg.score").read_text().splitlines()
    assert lines[0].split() == ["A", "-0.0"]
    assert len(lines) == 6


def test_scores_of_columns_are_written_too(run, table, tmp_path):
    out = tmp_path / "out"
    assert run("meta", table(), "--score", "BLEU", "--output", out, *FEW).exit_code == 0
    assert (out / "metric-scores/he-en/BLEU-all.seg.score").read_text() == score_lines(
        {system: [float(score) for score in row] for system, row in BLEU.items()}
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_scores_are_written_although_the_result_cannot_be_printed(run_process, table, tmp_path):
    with Path("/dev/full").open("wb") as full:
        result = run_process("meta", table(), "--score", "BLEU", "-o", tmp_path / "out", *FEW, stdout=full)
    assert result.returncode == 1
    assert (tmp_path / "out/metric-scores/he-en/BLEU-all.seg.score").is_file()


def test_a_name_that_no_file_of_scores_can_hold_is_told_before_the_work(run, table, tmp_path):
    path = table([("a-b", "my system", "1", "1", "2"), ("a-b", "B", "1", "2", "2")])
    result = run("meta", path, "--score", "BLEU", "--output", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the system 'my system' cannot stand in a file of scores" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_to_is_told_before_the_work(run, table, tmp_path):
    file = write(tmp_path, "file", "")
    result = run("meta", table(), "--score", "BLEU", "--output", file / "out")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Cannot write into the folder" in result.stderr


def test_prints_a_table_or_tsv(run, eval_set):
    table = run("meta", eval_set, *FEW).stdout
    assert table.startswith("he-en, gold mqm, reference refB: 5 systems, 4 segments\n")
    assert max(map(len, table.splitlines())) <= 80
    assert run("meta", eval_set, "--tsv", *FEW).stdout.startswith("lang_pair\tmetric\trank\tsystem_n\t")


def test_the_seed_and_the_permutations_are_told(run, eval_set):
    found = json.loads(run("meta", eval_set, "--json", "--perm-both", "30", "--seed", "9").stdout)
    assert found["signature"].startswith("bertscore-onnx|permutations:30|seed:9|version:")


def test_language_pairs_without_the_gold_are_left_out(run, eval_set):
    write(eval_set, "human-scores/en-de.da.seg.score", score_lines(HUMAN))
    assert record(run("meta", eval_set, "--gold", "mqm", "--json", *FEW)).keys() == {"he-en"}


def test_each_language_pair_takes_its_own_metrics_of_those_that_are_named(run, eval_set):
    write_eval_set(eval_set, "en-de")
    write(eval_set, "metric-scores/en-de/QE-src.seg.score", score_lines(BLEU))
    found = record(run("meta", eval_set, "--metric-scores", "QE-src", "BLEU-refB", "--json", *FEW))
    assert {pair: [*one["metrics"]] for pair, one in found.items()} == {
        "en-de": ["QE-src", "BLEU-refB"],
        "he-en": ["BLEU-refB"],
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gold", "da"), "has no gold of he-en called 'da'; it has mqm."),
        (("--reference", "refC"), "has no reference of he-en called 'refC'; it has refA, refB."),
        (("--metric-scores", "BLUE-refB"), "Did you mean 'BLEU-refB'?"),
        (("--language-pair", "he-eng"), "called 'he-eng'; it has he-en. Did you mean 'he-en'?"),
        (("--reference", "refA"), "has no scores of metrics of he-en with the reference refA; it has BLEU-refB, chrF"),
    ],
)
def test_what_a_set_does_not_have_is_told_with_what_it_has(run, eval_set, options, message):
    result = run("meta", eval_set, *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("lang_pair system segment humans BLEU", [("a", "A", "1", "1", "1")], "no column 'human' or 'human_score'"),
        ("lang_pair system segment humans BLEU", [("a", "A", "1", "1", "1")], "Did you mean 'humans'?"),
        ("lang_pair sistem segment human BLEU", [("a", "A", "1", "1", "1")], "Did you mean 'sistem'?"),
        ("langpair system segment human BLEU", [("a", "A", "1", "1", "1")], "Did you mean 'langpair'?"),
        ("lang_pair system segment human BLUE", [("a", "A", "1", "1", "1")], "Did you mean 'BLUE'?"),
        (
            "lang_pair system segment human BLEU",
            [("a", "A", "1", "1", "1"), ("a", "A", "2", "good", "1")],
            "line 3: the column 'human' holds 'good'; expected a number",
        ),
        (
            "lang_pair system segment human BLEU",
            [("a", "A", "1", "1", "")],
            "line 2: the column 'BLEU' holds no score, but 'human' a judgement",
        ),
        (
            "lang_pair system segment human BLEU",
            [("a", "A", "1", "1", "1"), ("a", "B", "1", "1", "1"), ("a", "A", "1", "2", "1")],
            "line 4: the system 'A' occurs a second time for segment '1'; the first is",
        ),
        (
            "lang_pair system human BLEU",
            [("a", "A", "1", "1"), ("a", "A", "1", "1")],
            "line 3: the system 'A' occurs a second time for it, without a column of segments",
        ),
        ("lang_pair system segment human BLEU", [("a", "A", "1", "", "1")], "none of the 1 systems has a human score"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(run, table, header, rows, message):
    result = run("meta", table(rows, header=header), "--score", "BLEU")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_a_language_pair_that_a_table_does_not_have_is_told(run, table):
    result = run("meta", table(), "--score", "BLEU", "--language-pair", "en-de")
    assert "has no rows of the language pair 'en-de'; it has he-en" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "name columns of scores, --score COLUMN, or score the texts"),
        (("--score", "BLEU", "--gold", "mqm"), "it has no effect on a table"),
        (("--score", "BLEU", "--reference", "refB"), "it has no effect on a table"),
        (("--metric", "bertscore"), "bertscore needs a model"),
        (("--metric", "blue"), "'blue' is none of bertscore, bleu, chrf, ter"),
        (("--score", "BLEU", "--json", "--tsv"), "--json, --tsv"),
    ],
)
def test_options_that_do_not_fit_a_table_exit_2(run, table, options, message):
    result = run("meta", table(), *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--score", "BLEU"), "it has no effect on a folder"),
        (("--human-column", "human"), "it has no effect on a folder"),
        (("--output", "out"), "there is nothing to write"),
    ],
)
def test_options_that_do_not_fit_a_folder_exit_2(run, eval_set, options, message):
    result = run("meta", eval_set, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_scores_of_one_name_are_told(run, table):
    rows = [("a", "A", "1", "1", "1", "x", "y")]
    path = table(rows, header="lang_pair system segment human bleu candidate reference")
    result = run("meta", path, "--score", "bleu", "--metric", "bleu")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "scores called 'bleu' exist already" in result.stderr


def test_a_source_that_is_not_there_is_told(run, tmp_path):
    result = run("meta", tmp_path / "nothing", "--score", "BLEU")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "There is no folder or file" in result.stderr


def test_an_option_of_the_library_is_named_as_one_of_the_command(run, eval_set):
    write(eval_set, "human-scores/he-en.da.seg.score", score_lines(HUMAN))
    assert "has 2 kinds of judgements of he-en: da, mqm. Name one as `--gold`." in run("meta", eval_set).stderr


def test_systems_that_are_judged_on_different_segments_are_told_of(run, table):
    rows = [("a", s, g, str(len(s + g)), g) for s, g in (("A", "1"), ("A", "2"), ("B", "1"), ("C", "1"))]
    found = record(run("meta", table(rows), "--score", "BLEU", "--json", *FEW))
    assert "systems are judged on different segments, 1 to 2 each, of which 1 for all" in found["a"]["notes"][0]


def test_texts_need_segments(run, table):
    path = table([("a", "A", "1", "x", "y")], header="lang_pair system human candidate reference")
    result = run("meta", path, "--metric", "bleu")
    assert "no column of segments, so that each row is a whole system" in result.stderr


def test_fewer_than_four_systems_have_no_test_of_williams_and_a_reason(run, table):
    rows = [("a", s, "1", h, b, c) for s, h, b, c in (("A", "1", "1", "2"), ("B", "2", "3", "1"), ("C", "4", "5", "3"))]
    path = table(rows, header="lang_pair system segment human BLEU chrF")
    [pair] = record(run("meta", path, "--score", "BLEU", "chrF", "--json", *FEW))["a"]["pairs"]
    assert pair["system"]["williams"]["p"] is None
    assert pair["system"]["williams"]["reason"] == "3 systems, and the test needs 4"


def test_a_table_in_a_pipe_is_read(run, table):
    text = table().read_text()
    result = run("meta", "-", "--input-format", "tsv", "--score", "BLEU", "--json", *FEW, stdin=text)
    assert record(result)["he-en"]["metrics"]["BLEU"]["segment"]["n"] == 20


@needs_metaeval
def test_wmt23_comes_out_as_published(run):
    options = ["--language-pair", "he-en", "--gold", "mqm", "--reference", "refB", "--metric-scores", "BERTscore-refB"]
    metric = record(run("meta", FOLDER / "wmt23", *options, "--json"))["he-en"]["metrics"]["BERTscore-refB"]
    assert [round(metric["system"][name], 3) for name in ("pearson", "spa")] == [0.895, 0.902]
    assert [round(metric["segment"][name], 3) for name in ("pearson", "acc_eq")] == [0.335, 0.515]
    assert (metric["system"]["n"], metric["segment"]["n"]) == (13, 10660)


SYSTEMS = "lang_pair,system,segment,human,m\ncs-en,A,1,90,1\ncs-en,B,1,60,2\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("tabulate", ["--task", "darr", "--score", "m"]),
        ("sacrebleu", ["--task", "darr", "--metric", "bleu", "--json"]),
        ("scipy", ["--task", "hybrid", "--score", "m", "--json"]),
        ("scipy", ["--score", "m", "--json"]),
    ],
)
def test_a_missing_package_is_told(run_process, tmp_path, package, arguments):
    result = run_process("meta", write(tmp_path, "table.csv", SYSTEMS), *arguments, blocked=(package,))
    assert (result.returncode, result.stdout) == (1, b"")
    message = (
        f"Error: This task needs {package}, which is not installed. Install it with "
        "`pip install 'bertscore-onnx[evaluation]'`.\n"
    )
    assert result.stderr.decode() == message


@pytest.mark.slow
@pytest.mark.parametrize("task", ["darr", "auc"])
def test_scores_that_are_there_need_no_package(run_process, tmp_path, task):
    table = write(
        tmp_path,
        "table.csv",
        "label," + SYSTEMS.replace("\ncs-en,A", "\n1,cs-en,A").replace("\ncs-en,B", "\n0,cs-en,B"),
    )
    arguments = ("--task", task, "--score", "m", "--json")
    result = run_process("meta", table, *arguments, blocked=("tabulate", "sacrebleu", "scipy"))
    assert (result.returncode, result.stderr) == (0, b"")
