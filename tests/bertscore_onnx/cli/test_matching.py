"""The options of commands for what is matched, and how; and contexts."""

import json

import pytest

from bertscore_onnx import BERTScorer, Matching
from tests.support.eval_sets import write_eval_set

CANDIDATES = ["the cat sat on the mat.", "a dog ran", "red house !"]
REFERENCES = ["a cat sits on a mat.", "the dog runs", "the tree is blue!"]
CONTEXTS = ["it was red", "", "the dog sat"]


@pytest.fixture
def files(tmp_path):
    """The texts as files of lines, and options that name them."""
    for name, texts in (("c", CANDIDATES), ("r", REFERENCES), ("x", CONTEXTS), ("words", ["cat", "", "House "])):
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    return tmp_path


@pytest.fixture
def scored(run_json, files, tiny_bundle):
    """Score the texts with options; return the scores of each pair, and the signature."""

    def scored(*options, bundle=tiny_bundle):
        arguments = ["-c", files / "c.txt", "-r", files / "r.txt", "--device", "cpu", "-s", "-m", bundle]
        result = run_json("score", *arguments, *options)
        return [pair["f1"] for pair in result["segments"]], result["signature"]

    return scored


@pytest.mark.parametrize(
    ("options", "matching"),
    [
        (["--preset", "code-bert-score"], "code-bert-score"),
        (["--exclude", "special", "punctuation", "--exclude", "words.txt"], {"words": ["cat", "House"]}),
        (["--beta", "3"], {"beta": 3}),
        (["--matching", "assignment"], {"method": "assignment"}),
        (["--preset", "moverscore-2", "--exclude", "subwords"], Matching.named("moverscore-2", exclude=("subwords",))),
        (["--center", "c.txt"], {"center": CANDIDATES}),
        (["--center", "references"], {"center": "references"}),
    ],
)
def test_options_describe_a_matching(scored, files, monkeypatch, tiny_bundle, options, matching):
    monkeypatch.chdir(files)
    if isinstance(matching, dict):
        more = {"exclude": ("special", "punctuation")} if "words" in matching else {}
        matching = Matching(**matching, **more)
    with BERTScorer(tiny_bundle, device="cpu", matching=matching) as scorer:
        expected, signature = scorer.score(CANDIDATES, REFERENCES, return_hash=True)
    assert scored(*options) == (pytest.approx(expected.F.tolist(), abs=1e-6), signature)
    assert "|matching:" in signature


@pytest.mark.parametrize(
    ("given", "layers"), [("1-3", (1, 2, 3)), ("0,2", (0, 2)), ("-3--2", (-3, -2)), ("3,1-2,3", (1, 2, 3))]
)
def test_layers_are_numbers_and_ranges(scored, all_layers_bundle, given, layers):
    matching = Matching(layers=layers, pool="p-means")
    with BERTScorer(all_layers_bundle, device="cpu", matching=matching) as scorer:
        expected, signature = scorer.score(CANDIDATES, REFERENCES, return_hash=True)
    found = scored("--layers", given, "--pool", "p-means", bundle=all_layers_bundle)
    assert found == (pytest.approx(expected.F.tolist(), abs=1e-6), signature)


def test_the_default_is_named_nowhere(scored):
    assert scored("--preset", "bertscore") == scored()
    assert "matching" not in scored()[1]


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("ref_contexts", [None, ["a tree", "it is", "blue"]])
def test_contexts_are_lines_or_a_column(scored, files, tiny_bundle, ref_contexts):
    with (
        BERTScorer(tiny_bundle, device="cpu", matching="doc-bert-score") as scorer,
        pytest.warns(match="an empty context"),
    ):
        expected, signature = scorer.score(
            CANDIDATES, REFERENCES, contexts=CONTEXTS, ref_contexts=ref_contexts, return_hash=True
        )
    rows = [{"before": [context] if context else []} for context in CONTEXTS]
    (files / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (files / "y.txt").write_text("".join(f"{context}\n" for context in ref_contexts or ()))
    more = ["--preset", "doc-bert-score", *(["--ref-context", files / "y.txt"] if ref_contexts else [])]
    assert signature.count("|matching:doc-bert-score+context|") == 1
    for options in (["x.txt"], ["x.jsonl", "--context-column", "before"]):
        found = scored("--context", files / options[0], *options[1:], *more)
        assert found == (pytest.approx(expected.F.tolist(), abs=1e-6), signature)


@pytest.mark.filterwarnings("default::UserWarning")
def test_one_table_has_pairs_and_contexts_and_comes_back(run, files, tiny_bundle):
    rows = [
        {"candidate": one, "reference": two, "context": [three] if three else None}
        for one, two, three in zip(CANDIDATES, REFERENCES, CONTEXTS, strict=True)
    ]
    (files / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    arguments = ["score", "-m", tiny_bundle, "-c", files / "t.jsonl", "--context", files / "t.jsonl"]
    result = run(*arguments, "-o", files / "o.jsonl")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "Warning: 2 texts have an empty context and are scored without one.\n"
    written = [json.loads(line) for line in (files / "o.jsonl").read_text().splitlines()]
    assert [{name: row[name] for name in rows[0]} for row in written] == rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "moverscore"], "There is no preset 'moverscore'; expected bertscore, code-bert-score,"),
        (["--exclude", "puncts"], "--exclude 'puncts' is no file, and none of special, punctuation,"),
        (["--beta", "0"], "--beta is 0.0; expected a number above 0"),
        (["--layers", "2-4"], "holds layer 2 only"),
        (["--layers", "2-"], "--layers is '2-'; expected numbers and ranges, such as 2-4, 8,9,12 or -5--1."),
        (["--layers", "4-2"], "--layers is '4-2'; expected numbers and ranges"),
        (["--preset", "moverscore-1"], "holds layer 2 only"),
        (["--center", "nowhere.txt"], "nowhere.txt"),
        (["--preset", "code-bert-score", "--rescale-with-baseline", "--lang", "en"], "those of code-bert-score."),
        (["--context", "words.txt"], "c.txt has 3 lines and words.txt has 4 lines; expected"),
        (["--matching", "transport", "--long-text", "window"], "at most 1,024 tokens"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(refused, files, monkeypatch, tiny_bundle, options, message):
    monkeypatch.chdir(files)
    (files / "words.txt").write_text("a\nb\nc\nd\n")
    said = refused("score", "-m", tiny_bundle, "-c", "c.txt", "-r", "r.txt", *options)
    assert said.startswith("Error: ")
    assert message in said


@pytest.mark.parametrize(
    "options", [["--pool", "mean"], ["--ref-context", "x.txt"], ["--context", "x.txt", "--context-column", "a"]]
)
def test_options_without_effect_are_refused(refused, files, monkeypatch, tiny_bundle, options):
    monkeypatch.chdir(files)
    assert "has no effect" in refused("score", "-m", tiny_bundle, "-c", "c.txt", "-r", "r.txt", *options, status=2)


def test_layers_beyond_the_model_are_refused(refused, files, all_layers_bundle):
    said = refused("score", "-m", all_layers_bundle, "-c", files / "c.txt", "-r", files / "r.txt", "--layers", "2-9")
    assert "has layers 0 to 3" in said


@pytest.mark.filterwarnings("default::UserWarning")
def test_pairs_without_a_token_score_zero_with_the_reason(run, files, tiny_bundle):
    (files / "c.txt").write_text("!\na dog\n. .\n")
    result = run(
        "score", "-m", tiny_bundle, "-c", files / "c.txt", "-r", files / "r.txt", "--exclude", "punctuation", "-s"
    )
    assert [line for line in result.stdout.splitlines() if line.startswith("0.0")] == [
        "0.000000\t0.000000\t0.000000"
    ] * 2
    assert "Warning: 2 pairs score 0 because the matching excludes every token of a side.\n" in result.stderr


def test_show_leaves_excluded_tokens_out_and_refuses_transport(run, refused, tiny_bundle):
    texts = ["show", "-m", tiny_bundle, "-c", "the cat sat .", "-r", "a cat sat ."]
    shown = run(*texts, "--exclude", "punctuation", "special").stdout
    assert "cat" in shown
    assert " . " not in shown
    assert "matching: exclude=punctuation+special" in shown
    assert "in greedy matching alone, and this is moverscore-2" in refused(*texts, "--preset", "moverscore-2", status=2)
    assert "give --center FILE" in refused(*texts, "--center", "references", "--worst", 1, status=2)
    empty = run("show", "-m", tiny_bundle, "-c", "!", "-r", "a cat", "--exclude", "punctuation").stdout
    assert "The matching excludes all tokens of the candidate, so the pair scores 0." in empty


def test_a_baseline_of_a_matching_goes_into_a_file_alone(run, refused, files, tiny_bundle):
    (files / "corpus.txt").write_text("".join(f"the {word} sat on the mat {word}\n" for word in ["cat", "dog"] * 10))
    arguments = ["baseline", "-m", tiny_bundle, "--corpus", files / "corpus.txt", "--exclude", "special"]
    assert run(*arguments, "-o", files / "b.csv").exit_code == 0
    rescaled = ["--rescale-with-baseline", "--baseline-path", files / "b.csv"]
    texts = ["score", "-m", tiny_bundle, "-c", files / "c.txt", "-r", files / "r.txt", "--exclude", "special"]
    assert "rescale:file-" in run(*texts, *rescaled).stdout
    assert "--into-bundle" in refused(*arguments, "--into-bundle", "en", status=2)


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (["score", "-c", "c.txt", "-r", "r.txt"], "add --context FILE"),
        (["batch", "-i", "t.jsonl", "-o", "out"], "add --context-column NAME"),
        (["show", "-c", "a cat", "-r", "a dog"], "`show` takes no contexts"),
        (["baseline", "--corpus", "c.txt"], "random pairs have none"),
        (["tune-layers", "--judgements", "t.jsonl"], "`tune-layers` reads no contexts"),
        (["meta", "t.jsonl", "--task", "auc"], "--task auc reads none"),
        (["meta", "t.jsonl", "--task", "phenomena"], "--task phenomena reads none"),
    ],
)
def test_a_preset_for_contexts_is_refused_without_them(refused, tiny_bundle, command, remedy):
    said = refused(*command, "--model", tiny_bundle, "--preset", "doc-bert-score", status=2)
    assert f"doc-bert-score without contexts is bertscore; {remedy}." in said


def test_phenomena_are_of_the_preset_and_presets_exclude_other_options(run_json, refused, files, tiny_bundle):
    example = {"category": "a", "reference": "a cat", "good": ["a cat sat"], "bad": ["a dog"]}
    (files / "p.jsonl").write_text(json.dumps(example))
    arguments = ["meta", files / "p.jsonl", "--task", "phenomena", "--model", tiny_bundle, "--preset", "moverscore-2"]
    assert run_json(*arguments)["metrics"].keys() == {"moverscore-2"}
    said = refused(*arguments, "--beta", 2, status=2)
    assert "--preset and the other options of matching: use one of them." in said


def test_meta_judges_presets_as_metrics(run_json, tmp_path, tiny_bundle):
    eval_set = write_eval_set(tmp_path / "set")
    (eval_set / "documents").mkdir()
    (eval_set / "documents/he-en.docs").write_text("".join(f"news\t{name}\n" for name in "aabbb"))
    arguments = [
        "meta",
        eval_set,
        "--language-pair",
        "he-en",
        "--gold",
        "mqm",
        "--reference",
        "refB",
        "--perm-both",
        20,
    ]
    presets = ["bertscore", "doc-bert-score", "moverscore-2"]
    found = run_json(*arguments, "--model", tiny_bundle, "--preset", *presets)["language_pairs"]["he-en"]["metrics"]
    assert {"bertscore-refB", "doc-bert-score-refB", "moverscore-2-refB"} <= found.keys()
    one = run_json(*arguments, "--model", tiny_bundle, "--preset", "doc-bert-score")["language_pairs"]["he-en"][
        "metrics"
    ]
    assert one["doc-bert-score-refB"]["segment"] == found["doc-bert-score-refB"]["segment"]
    assert "doc-bert-score+context" in found["doc-bert-score-refB"]["signature"]
    assert "matching" not in found["bertscore-refB"]["signature"]


def test_compare_takes_the_sentences_before_in_the_same_document(run_json, refused, files, tiny_bundle):
    (files / "d.txt").write_text("a\na\nb\n")
    (files / "other.txt").write_text("".join(f"{text}\n" for text in REFERENCES[::-1]))
    systems = ["compare", "-m", tiny_bundle, "-r", files / "r.txt", "-c", files / "c.txt", files / "other.txt"]
    presets = ["--preset", "doc-bert-score", "--resamples", 20]
    found = run_json(*systems, *presets, "--documents", files / "d.txt")
    with BERTScorer(tiny_bundle, device="cpu", matching="doc-bert-score") as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES, contexts=[None, REFERENCES[0], None])
    assert found["systems"][0]["metrics"]["bertscore"]["score"] == pytest.approx(expected.F.mean(), abs=1e-6)
    assert "|matching:doc-bert-score+context|" in found["signatures"]["bertscore"]
    assert "those of its document" in refused(*systems, *presets, status=2)
    assert "matching" in run_json(*systems, "--preset", "moverscore-2", "--resamples", 20)["signatures"]["bertscore"]
