"""`bertscore-onnx score --by`: the means of each group of rows."""

import csv
import json

import pandas as pd
import pytest

pytest.importorskip("pyarrow", reason="needs the extra parquet")

NUMBER = 40
FRAME = pd.DataFrame(
    {
        "candidate": [f"the cat sat {'on the mat ' * (row % 4)}, {row}" for row in range(NUMBER)],
        "reference": [["a cat sat", "the dog ran", "it"][row % 3] for row in range(NUMBER)],
        "year": [[2009, 2010, 10][row % 5 % 3] for row in range(NUMBER)],
        "domain": [
            ["news", 'the "web", and more', "ü\tspeech", "10"][row * 7 % 5 % 4]
            for row in range(NUMBER)
        ],
    }
)


@pytest.fixture(scope="module")
def expected(scorer):
    scores = scorer.score(FRAME["candidate"].tolist(), FRAME["reference"].tolist())
    scored = FRAME.assign(precision=scores.P, recall=scores.R, f1=scores.F)

    def by(column):
        means = scored.groupby(scored[column].astype(str))[["precision", "recall", "f1"]].mean()
        return {
            name: pytest.approx([*row], abs=1e-6)
            for name, row in zip(means.index, means.to_numpy(), strict=True)
        }

    return by


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, force_ascii=False)
    else:
        frame.to_csv(path, sep="\t" if ".tsv" in path.name else ",", index=False)
    return path


def test_the_gate_holds_for_every_group(run_score, tmp_path):
    frame = pd.DataFrame(
        {"candidate": ["a cat", "a dog"], "reference": ["a cat", "the house"], "topic": ["x", "y"]}
    )
    arguments = ["-c", write(frame, tmp_path / "in.csv"), "--by", "topic", "-q"]
    result = run_score(*arguments, "--min-f1", 0.999)
    lines = result.stderr.splitlines()
    assert (result.exit_code, [line.partition(" is ")[0] for line in lines]) == (
        1,
        ["Failed: the mean F1", "Failed: the mean F1 of the group y"],
    )
    assert run_score(*arguments, "--min-f1", 0.1).exit_code == 0


@pytest.mark.parametrize("column", ["year", "domain"])
def test_groups_have_the_same_means_in_any_order_and_format(
    run_json, tiny_bundle, tmp_path, expected, column
):
    results = []
    for seed, name in enumerate(["a.csv", "b.tsv", "c.jsonl", "d.parquet", "e.csv.gz"]):
        table = write(FRAME.sample(frac=1, random_state=seed, ignore_index=True), tmp_path / name)
        results.append(run_json("score", "-m", tiny_bundle, "-c", table, "--by", column)["groups"])
    assert all(result == results[0] for result in results)
    found = {
        group["name"]: [group["precision"], group["recall"], group["f1"]] for group in results[0]
    }
    assert found == expected(column)
    sizes = FRAME[column].astype(str).value_counts().to_dict()
    assert {group["name"]: group["pairs"] for group in results[0]} == sizes
    if column == "year":
        assert [group["name"] for group in results[0]] == ["10", "2009", "2010"]


def test_text_tsv_and_json_agree(run, run_json, tiny_bundle, tmp_path):
    command = ["score", "-m", tiny_bundle, "-c", write(FRAME, tmp_path / "a.csv"), "--by", "domain"]
    groups = run_json(*command)["groups"]
    result = run(*command, "--format", "tsv")
    head, *rows = csv.reader(result.stdout.splitlines(), delimiter="\t", strict=True)
    assert result.exit_code == 0
    assert " F1: " in result.stderr
    assert "group" not in result.stderr
    assert head == ["group", "precision", "recall", "f1", "pairs", "truncated"]
    values = ("precision", "recall", "f1", "pairs", "truncated")
    assert rows == [[group["name"], *(str(group[key]) for key in values)] for group in groups]
    lines = run(*command).stdout.splitlines()
    assert lines[2].split() == ["group", "pairs", "P", "R", "F1"]
    shown = [
        f"{group['pairs']} " + " ".join(f"{group[key]:.6f}" for key in values[:3])
        for group in groups
    ]
    assert [" ".join(line.split()[-4:]) for line in lines[4:]] == shown


@pytest.mark.parametrize(
    "options", [["-s"], ["-s", "--idf"], ["-o", "out.csv"], ["-o", "out.parquet", "--idf"]]
)
def test_groups_stand_beside_rows(run_score, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    write(FRAME, tmp_path / "a.parquet")
    command = ["-c", "a.parquet"]
    alone, beside = run_score(*command, *options), run_score(*command, *options, "--by", "year")
    assert beside.exit_code == 0
    if "-s" in options:
        assert beside.stdout == alone.stdout
    else:
        file = tmp_path / options[1]
        rows = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
        assert [*rows.columns] == [*FRAME.columns, "precision", "recall", "f1"]
    summary = beside.stderr if "-s" in options else beside.stdout
    assert [line.split()[0] for line in summary.splitlines()[-3:]] == ["10", "2009", "2010"]
    with_idf = ["--idf"] if "--idf" in options else []
    assert (
        summary.splitlines()[-5:]
        == run_score(*command, *with_idf, "--by", "year").stdout.splitlines()[-5:]
    )


def test_the_table_of_references_may_have_the_groups(run_json, tiny_bundle, tmp_path):
    both = write(FRAME, tmp_path / "both.csv")
    candidates, references = (
        tmp_path / "candidates.txt",
        write(FRAME.iloc[:, 1:], tmp_path / "references.tsv"),
    )
    candidates.write_text("\n".join(FRAME["candidate"]) + "\n")
    command = ["score", "-m", tiny_bundle, "--by", "year"]
    assert run_json(*command, "-c", candidates, "-r", references) == run_json(*command, "-c", both)


def test_names_with_tabs_and_line_ends_come_back_from_tsv(run_score, tmp_path):
    names = ["a\tb", "a\nb", "a\rb", 'a "b"', "a b"]
    rows = [{"candidate": "it", "reference": "it", "domain": name} for name in names]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = run_score("-c", tmp_path / "in.jsonl", "--by", "domain", "--format", "tsv")
    (tmp_path / "out.tsv").write_bytes(result.stdout_bytes)
    read = pd.read_csv(tmp_path / "out.tsv", sep="\t", lineterminator="\n")
    assert sorted(read["group"]) == sorted(names)
    assert read["pairs"].tolist() == [1] * len(names)
