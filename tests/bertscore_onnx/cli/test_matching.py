"""`--matching` of all commands; and contexts."""

import json

import pytest

from bertscore_onnx import BERTScorer, Matching

CANDIDATES = ["the cat sat on the mat.", "a dog ran", "red house !"]
REFERENCES = ["a cat sits on a mat.", "the dog runs", "the tree is blue!"]
CONTEXTS = ["it was red", "", "the dog sat"]


@pytest.fixture
def files(tmp_path):
    for name, texts in (
        ("c", CANDIDATES),
        ("r", REFERENCES),
        ("x", CONTEXTS),
        ("words", ["cat", "", "House "]),
    ):
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    return tmp_path


@pytest.fixture
def scored(run_json, files, tiny_bundle):
    def scored(*options, bundle=tiny_bundle):
        arguments = [
            "-c",
            files / "c.txt",
            "-r",
            files / "r.txt",
            "--device",
            "cpu",
            "-s",
            "-m",
            bundle,
        ]
        result = run_json("score", *arguments, *options)
        return [pair["f1"] for pair in result["segments"]], result["signature"]

    return scored


@pytest.mark.parametrize(
    ("spec", "matching"),
    [
        ("code-bert-score,beta=3", "code-bert-score,beta=3"),
        ("words=words.txt", Matching(words=("cat", "House"))),
    ],
)
def test_a_spec_names_the_matching(scored, files, monkeypatch, tiny_bundle, spec, matching):
    monkeypatch.chdir(files)
    with BERTScorer(tiny_bundle, device="cpu", matching=matching) as scorer:
        expected, signature = scorer.score(CANDIDATES, REFERENCES, return_hash=True)
    assert scored("--matching", spec) == (pytest.approx(expected.F.tolist(), abs=1e-6), signature)
    assert "|matching:" in signature


@pytest.mark.filterwarnings("default::UserWarning")
def test_contexts_are_lines_or_a_column(scored, files, tiny_bundle):
    with (
        BERTScorer(tiny_bundle, device="cpu", matching="doc-bert-score") as scorer,
        pytest.warns(match="an empty context"),
    ):
        expected, signature = scorer.score(
            CANDIDATES, REFERENCES, contexts=CONTEXTS, return_hash=True
        )
    rows = [{"before": [context] if context else []} for context in CONTEXTS]
    (files / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert signature.count("|matching:doc-bert-score+context|") == 1
    for options in (["x.txt"], ["x.jsonl", "--columns", "context=before"]):
        found = scored(
            "--context", files / options[0], *options[1:], "--matching", "doc-bert-score"
        )
        assert found == (pytest.approx(expected.F.tolist(), abs=1e-6), signature)


@pytest.mark.filterwarnings("default::UserWarning")
def test_one_table_has_pairs_and_contexts_and_comes_back(run_score, files):
    rows = [
        {"candidate": one, "reference": two, "context": [three] if three else None}
        for one, two, three in zip(CANDIDATES, REFERENCES, CONTEXTS, strict=True)
    ]
    (files / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    arguments = ["-c", files / "t.jsonl", "--context", files / "t.jsonl"]
    result = run_score(*arguments, "-o", files / "o.jsonl")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "Warning: 2 texts have an empty context and are scored without one.\n"
    written = [json.loads(line) for line in (files / "o.jsonl").read_text().splitlines()]
    assert [{name: row[name] for name in rows[0]} for row in written] == rows


def test_show_leaves_excluded_tokens_out(run, tiny_bundle):
    texts = ["show", "-m", tiny_bundle, "-c", "the cat sat .", "-r", "a cat sat ."]
    shown = run(*texts, "--matching", "exclude=punctuation+special").stdout
    assert "cat" in shown
    assert " . " not in shown
    assert "matching: exclude=punctuation+special" in shown
    empty = run(
        "show", "-m", tiny_bundle, "-c", "!", "-r", "a cat", "--matching", "exclude=punctuation"
    ).stdout
    assert "The matching excludes all tokens of the candidate, so the pair scores 0." in empty


def test_a_baseline_of_a_matching_goes_into_a_file_alone(
    run, run_score, refused, files, tiny_bundle
):
    (files / "corpus.txt").write_text(
        "".join(f"the {word} sat on the mat {word}\n" for word in ["cat", "dog"] * 10)
    )
    arguments = [
        "baseline",
        "-m",
        tiny_bundle,
        "--corpus",
        files / "corpus.txt",
        "--matching",
        "exclude=special",
    ]
    assert run(*arguments, "-o", files / "b.csv").exit_code == 0
    rescaled = ["--rescale-with-baseline", "--baseline-path", files / "b.csv"]
    texts = ["-c", files / "c.txt", "-r", files / "r.txt", "--matching", "exclude=special"]
    assert "rescale:file-" in run_score(*texts, *rescaled).stdout
    assert "--into-bundle" in refused(*arguments, "--into-bundle", "en")


def test_meta_judges_matchings_as_metrics(run_json, refused, tmp_path, tiny_bundle):
    header = "lang_pair system segment document human candidate reference"
    lines = [header.split()]
    for system in range(3):
        for number, document in enumerate("aabbb"):
            texts = f"a cat {number} sat{' still' * system}", f"the cat {number} sat on a mat"
            human = str((system + number) % 3)
            lines.append(["he-en", f"S{system}", str(number), document, human, *texts])
    table = tmp_path / "judgements.tsv"
    table.write_text("".join("\t".join(line) + "\n" for line in lines))
    arguments = ["meta", table, "--resamples", 20, "--model", tiny_bundle, "--matching"]

    def metrics(*specs):
        return run_json(*arguments, *specs)["language_pairs"]["he-en"]["metrics"]

    found = metrics("bertscore", "doc-bert-score", "beta=3")
    assert found.keys() == {"bertscore", "doc-bert-score", "beta=3"}
    alone = metrics("doc-bert-score")["doc-bert-score"]
    assert alone["segment"] == found["doc-bert-score"]["segment"]
    assert "doc-bert-score+context" in found["doc-bert-score"]["signature"]
    assert "matching" not in found["bertscore"]["signature"]
    assert "beta=2+context" in metrics("beta=2", "--context-sentences", 1)["beta=2"]["signature"]
    said = refused(*arguments, "beta=2", "bertscore", "--context-sentences", 1)
    assert "no effect without doc-bert-score among the matchings" in said


def test_compare_takes_the_sentences_before_in_the_same_document(
    run_json, refused, files, tiny_bundle
):
    (files / "d.txt").write_text("a\na\nb\n")
    (files / "other.txt").write_text("".join(f"{text}\n" for text in REFERENCES[::-1]))
    systems = [
        "compare",
        "-m",
        tiny_bundle,
        "-r",
        files / "r.txt",
        "-c",
        files / "c.txt",
        files / "other.txt",
    ]
    matching = ["--matching", "doc-bert-score", "--resamples", 20]
    found = run_json(*systems, *matching, "--documents", files / "d.txt")
    with BERTScorer(tiny_bundle, device="cpu", matching="doc-bert-score") as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES, contexts=[None, REFERENCES[0], None])
    assert found["systems"][0]["metrics"]["bertscore"]["score"] == pytest.approx(
        expected.F.mean(), abs=1e-6
    )
    assert "|matching:doc-bert-score+context|" in found["signatures"]["bertscore"]
    assert "those of a document" in refused(*systems, *matching)
