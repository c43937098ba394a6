import json
import re
from contextlib import chdir
from pathlib import Path

import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx_evaluation import compare

BASE = "the cat sat on the mat\na red house\nit is a dog\n"
OTHER = "a dog sits on the mat\nthe blue house\nit is the dog\n"
REFERENCES = "a dog sits on the mat\nthe blue house is red\nit is a dog\n"


@pytest.fixture
def files(write):
    return (
        "-c",
        write("base.txt", BASE),
        write("other.txt", OTHER),
        "-r",
        write("references.txt", REFERENCES),
    )


def test_prints_what_python_finds(run, files, tiny_bundle):
    command = (
        "compare",
        "-m",
        tiny_bundle,
        *files,
        "--metric",
        "bertscore",
        "bleu",
        "--resamples",
        "50",
    )
    result, with_examples = run(*command), run(*command, "--examples", "3")
    texts = {"base": BASE.splitlines(), "other": OTHER.splitlines()}
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        expected = compare(
            texts,
            REFERENCES.splitlines(),
            scorer=scorer,
            metrics=["bertscore", "bleu"],
            num_resamples=50,
        )
    assert (result.exit_code, result.stderr) == (
        0,
        f"base is {files[1]}, other is {files[2]}; segments by position.\nThe baseline is base.\n",
    )
    assert result.stdout == f"{expected.table()}\n"
    examples = "\nSegments on which other and base differ most:\n1  "
    assert with_examples.stdout.startswith(f"{result.stdout}{examples}")
    assert "other      a dog sits on the mat\n" in with_examples.stdout
    assert "scores best: not significantly better than" in result.stdout
    assert "95 % of delta" in result.stdout


@pytest.fixture
def compared(run_json, files):
    def compared(*options, metric="bleu"):
        return run_json("compare", *files, "--metric", *metric.split(), *options)

    return compared


def test_all_pairs_are_listed_and_options_of_metrics_are_in_their_signatures(compared, write):
    metric = (
        "bleu,tokenize=char,smooth_method=add-k,smooth_value=0.5 chrf,word_order=2,lowercase=true"
    )
    record = compared(
        "-c",
        write("third.txt", REFERENCES),
        "--all-pairs",
        "--resamples",
        20,
        "--seed",
        3,
        metric=metric,
    )
    assert "|test:permutation|resamples:20|seed:3|" in record["signature"]
    names = [("base", "other"), ("base", "third"), ("other", "third")]
    assert [(pair["baseline"], pair["system"]) for pair in record["pairs"]["bleu"]] == names
    assert "tok:char|smooth:add-k[0.50]" in record["signatures"]["bleu"]
    assert "case:lc" in record["signatures"]["chrf"]
    assert "nw:2" in record["signatures"]["chrf"]


def test_files_of_runs_are_one_system(run, write):
    first, second, other, ref = (
        write(f"{number}.txt", text)
        for number, text in enumerate((BASE, OTHER, REFERENCES, REFERENCES))
    )
    named = [f"a={first}", f"a={second}", f"b={other}"]
    result = run("compare", "-c", *named, "-r", ref, "--metric", "chrf", "--format", "json")
    systems = json.loads(result.stdout)["systems"]
    assert [system["metrics"]["chrf"]["runs"] for system in systems] == [2, 1]
    assert f"a is {first} and {second}, b is {other}; segments by position." in result.stderr


def test_references_of_several_files_are_several_references(compared, write):
    record = compared("-r", write("more.txt", BASE))
    assert record["systems"][0]["metrics"]["bleu"]["score"] == pytest.approx(100)
    assert "nrefs:2" in record["signatures"]["bleu"]


@pytest.mark.parametrize("names", [["a/out.txt", "b/out.txt"], ["out.v1", "out.v2", "out.v1.txt"]])
def test_systems_whose_files_or_stems_are_called_alike_are_called_by_their_paths(
    run_json, write, tmp_path, names
):
    for name, content in zip(names, (BASE, OTHER, REFERENCES), strict=False):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(name, content)
    with chdir(tmp_path):
        systems = run_json(
            "compare", "-c", *names, "-r", write("r.txt", REFERENCES), "--metric", "bleu"
        )["systems"]
    assert [system["name"] for system in systems] == names
    scores = [system["metrics"]["bleu"]["score"] for system in systems]
    assert scores[2:] == [pytest.approx(100)] * (len(names) - 2)


def test_a_report_is_written_beside_what_is_printed(run, files, tmp_path):
    report = tmp_path / "report.html"
    result = run("compare", *files, "--metric", "bleu", "--html", report)
    assert result.exit_code == 0
    assert "BLEU" in result.stdout
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir() if "report" in file.name] == ["report.html"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_report_is_written_where_nothing_can_be_printed(run_process, files, tmp_path):
    report = tmp_path / "report.html"
    with Path("/dev/full").open("w") as full:
        result = run_process(
            "compare", *files, "--metric", "bleu", "--format", "json", "--html", report, stdout=full
        )
    assert result.returncode == 2
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_report_that_cannot_be_written_or_replaces_an_input_is_refused(refused, files, tmp_path):
    stderr = refused(
        "compare", *files, "-m", "not-there", "--html", tmp_path / "absent" / "report.html"
    )
    assert "report.html" in stderr  # before the model is looked for
    assert "--html" in refused("compare", *files, "--metric", "bleu", "--html", files[2])
    assert files[2].read_text() == OTHER


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metric", "bleu", "-m", "roberta-large"], "no effect"),
        (["--metric", "bleu", "--idf"], "no effect"),
        (["--metric", "chrf", "CHRF,word_order=2"], "a second time"),
        (["--metric", "bertscore,idf=true", "-m", "x"], "no other options; it was given idf"),
    ],
)
def test_wrong_options_are_refused(refused, files, options, message):
    assert message in refused("compare", *files, *options)


def test_documents_are_read_a_name_per_line(compared, refused, files, write):
    names = write(
        "documents.txt", "".join(f"doc-{line % 2}\n" for line in range(REFERENCES.count("\n")))
    )
    record = compared("--documents", names, "--margin", 5)
    assert record["num_documents"] == 2
    assert "Tested on 2 documents, which tell as much as 1.8 of one size." in record["warnings"][0]
    assert "other" in record["systems"][1]["metrics"]["bleu"]["verdict"]
    stderr = refused("compare", *files, "--metric", "bleu", "--documents", write("few.txt", "a\n"))
    assert "few.txt has 1 line" in stderr
    table = "candidate\tdocument\n" + "".join(
        f"{text}\tdoc-{line % 2}\n" for line, text in enumerate(BASE.splitlines())
    )
    by_column = compared("--documents", write("base.tsv", table), "--margin", 5)
    assert by_column["systems"] == record["systems"]
    assert "no column 'document'" in refused(
        "compare",
        *files,
        "--metric",
        "bleu",
        "--documents",
        write("other.tsv", "reference\n" + REFERENCES),
    )


def outputs(new, number=40):
    """Return the lines of a table of three systems, whose newest has the same output in all
    rows.
    """
    rows = [(row, f"a dog sits on the mat {row}") for row in range(number)]
    return ["id,reference,old,mid,new,note,"] + [
        f"{row},{text},{text},{text},{new},," for row, text in rows
    ]


@pytest.mark.parametrize("new", ["", "None", "nan", "42"])
def test_a_system_that_failed_in_every_row_is_compared(run, refused, write, new):
    wide, long = outputs(new), ["id,system,candidate,reference"]
    for line in wide[1:]:
        row, reference, *texts = line.split(",")[:5]
        long += [
            f"{row},{name},{text},{reference}" for name, text in zip("ABC", texts, strict=True)
        ]
    stderr = refused("compare", "-c", write("outputs.csv", "\n".join(wide)), "--metric", "chrf")
    assert "no column 'candidate'" in stderr
    for lines, named in ((wide, ("--systems", "old", "mid", "new")), (long, ("--baseline", "A"))):
        options = ("--metric", "chrf", "--fail-if-worse", "--resamples", 500, *named)
        result = run("compare", "-c", write("outputs.csv", "\n".join(lines)), *options)
        assert result.exit_code == 1
        assert re.search("Failed: chrF: (new|C) is worse than (old|A)", result.stderr)


def test_a_text_may_look_like_a_number(run, refused, write):
    lines = outputs("the cat")
    lines[9] = lines[9].replace("the cat", "2023")
    options = ("--metric", "chrf", "--examples", 0, "--resamples", 50)
    options += ("--systems", "old", "mid", "new")
    result = run("compare", "-c", write("outputs.csv", "\n".join(lines)), *options)
    assert (
        "systems old, mid, new; reference reference; segments by id; ignored note, ''."
        in result.stderr
    )
    names, *rows = (line.split(",") for line in lines)
    records = [dict(zip(names, row, strict=True)) for row in rows]
    assert run(
        "compare", "-c", write("outputs.jsonl", "\n".join(map(json.dumps, records))), *options
    ).stdout == (result.stdout)
    records[8]["new"] = 2023
    mixed = write("outputs.jsonl", "\n".join(map(json.dumps, records)))
    assert "line 9: the column 'new' holds a number; expected a text" in refused(
        "compare", "-c", mixed, *options
    )


def test_a_null_is_no_text(refused, write):
    nulls = [{"id": row, "reference": "a", "old": "a", "mid": "b", "new": None} for row in range(3)]
    table = write("outputs.jsonl", "\n".join(map(json.dumps, nulls)))
    assert "the column 'new' holds null" in refused(
        "compare", "-c", table, "--systems", "old", "mid", "new", "--metric", "chrf"
    )


class TestGivenScores:
    WIDE = "segment\tbase\tother\tnote\n" + "".join(
        f"{n}\t0.{n % 7}\t0.{n % 7 + 1}\tgood\n" for n in range(30)
    )

    def test_beside_our_own(self, run, tiny_bundle, write):
        files = [
            write(name, f"{text}\n" * 30)
            for name, text in (("base.txt", "a dog"), ("other.txt", "the cat"))
        ]
        table = write("comet.tsv", self.WIDE)
        arguments = (
            "compare",
            "-m",
            tiny_bundle,
            "-r",
            write("r.txt", "the cat sat\n" * 30),
            "-c",
            *files,
        )
        result = run(*arguments, "--scores", table, "--metric", "BERTScore", "--examples", 0)
        assert result.exit_code == 0
        assert re.search(r"^comet\nother +\S+ +\+0\.1000 ", result.stdout, re.MULTILINE)
        assert result.stdout.startswith("BERTScore F1 ")

    GROUPED = "segment,domain,base,worse\n" + "".join(
        f"{n},{'news' if n % 3 else 'talks'},0.{n % 7}5,0.{n % 7}{n % 4}\n" for n in range(90)
    )

    def test_groups_are_a_column_of_any_table(self, run, run_json, write):
        table = write("judge.csv", self.GROUPED)
        rows = [line.split(",") for line in self.GROUPED.splitlines()[1:]]
        named = ("--systems", "base", "worse", "--by", "domain")
        assert (
            "group domain; segments by segment." in run("compare", "--scores", table, *named).stderr
        )
        names = write(
            "domains.csv",
            "id,domain,document\n" + "".join(f"{row[0]},{row[1]},d{row[0]}\n" for row in rows),
        )
        plain = write(
            "plain.csv",
            "\n".join(",".join([row[0], *row[2:]]) for row in [["id", "", "base", "worse"], *rows]),
        )
        found = run_json("compare", "--scores", plain, "--documents", names, *named)
        assert [group["num_segments"] for group in found["groups"]["plain"]] == [60, 30, 90]

    @pytest.mark.parametrize("blank", ["", " "])
    def test_a_row_without_a_group_is_missing_in_every_format(
        self, run_json, refused, write, blank
    ):
        names, *rows = (line.split(",") for line in self.GROUPED.splitlines())
        rows[7][1] = blank
        records = [dict(zip(names, row, strict=True)) for row in rows]
        records[7]["domain"] = None
        by_csv = write("judge.csv", "\n".join(",".join(row) for row in [names, *rows]))
        by_json = write("judge.jsonl", "\n".join(map(json.dumps, records)))
        named = ("--systems", "base", "worse", "--by", "domain")
        assert "line 9: the column 'domain' holds" in refused("compare", "--scores", by_csv, *named)
        found = [
            run_json("compare", "--scores", table, *named, "--missing", "drop")
            for table in (by_csv, by_json)
        ]
        assert [group["num_segments"] for group in found[0]["groups"]["judge"]] == [59, 30, 89]
        assert (found[0]["groups"], found[0]["dropped"]) == (found[1]["groups"], ["7"])

    def test_a_worse_system_fails_after_results_are_written(self, run, write, tmp_path):
        table, page = write("judge.csv", self.GROUPED), tmp_path / "page.html"
        named = ("--systems", "base", "worse", "--higher-better", "judge")
        options = (*named, "--fail-if-worse", "--format", "json", "--html", page)
        failed = run("compare", "--scores", table, *options)
        assert failed.exit_code == 1
        assert "Failed: judge: worse is worse than base: -0.03" in failed.stderr
        assert json.loads(failed.stdout)["systems"][1]["metrics"]["judge"]["significant"]
        assert page.exists()
        assert run("compare", "--scores", table, "--baseline", "worse", *options).exit_code == 0

    def test_tables_and_sentences_fit_the_terminal(self, run, write, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        names = [f"a-system-with-a-rather-long-name-{row}" for row in range(12)]
        rows = [
            "\t".join(str((n * (row + 3)) % 11 + row / 4 + 0.3) for row in range(12))
            for n in range(60)
        ]
        table = write("judge.tsv", "\n".join(["\t".join(names), *rows]))
        text = run(
            "compare", "--scores", table, "--systems", *names, "--all-pairs", "--resamples", 2000
        ).stdout
        lines = text.splitlines()
        assert max(map(len, lines)) <= 80
        assert len(lines) < 110
        assert "A wider terminal also shows" in text

    def test_options_without_what_they_need_are_refused(self, refused, write):
        assert "--scores" in refused("compare")
        assert "--lower-better" in refused(
            "compare", "-c", "a", "b", "-r", "c", "-m", "x", "--lower-better", "y"
        )
        assert "--ref" in refused(
            "compare", "--scores", write("a.tsv", self.WIDE), "--metric", "bleu"
        )
