"""`benchmarks.correlations` with a tiny model and made-up judgements: its files, its page, and what it does again."""

import csv
import random
import shutil

import msgspec
import numpy as np
import pytest
from scipy import stats

from benchmarks import correlations
from benchmarks.correlations import main
from benchmarks.encoder_page import MEAN, Record, as_markdown
from benchmarks.layer_correlation import correlate_layers, export_bundle, measure_best
from bertscore_onnx import BERTScorer
from bertscore_onnx_evaluation.layers import tune_layers
from harness.processes import call_in_child
from harness.results import BEGIN, END
from tests.support.scores import WORDS

TITLE = "Made-up judgements"
SEGMENTS, SYSTEMS = 25, ("one", "two")


@pytest.fixture(scope="module")
def rows():
    """Judgements of two language pairs into one language, and one of another."""
    draw = random.Random(0)  # noqa: S311 -- made-up texts
    words = WORDS.split()
    found = []
    for language_pair in ("de-en", "fr-en", "en-de"):
        for segment in range(SEGMENTS):
            reference = draw.choices(words, k=8)
            for system in SYSTEMS:
                changed = draw.randint(0, 6)
                candidate = [*draw.choices(words, k=changed), *reference[changed:]]
                human = 100 - 10 * changed + draw.randint(-9, 9)
                found.append((language_pair, system, segment, " ".join(reference), " ".join(candidate), human))
    return found


@pytest.fixture
def judgements(rows, tmp_path):
    file = tmp_path / "made-up.tsv"
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target, delimiter="\t")
        writer.writerows([("lang_pair", "system", "segment", "reference", "candidate", "human"), *rows])
    return file


@pytest.fixture
def page(tmp_path):
    file = tmp_path / "page.md"
    file.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n", encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Do the work of children here, where what it needs is loaded already."""
    monkeypatch.setattr(correlations, "call_in_child", lambda function, *arguments, limit: function(*arguments))


@pytest.fixture
def first_in_children(in_this_process, monkeypatch):
    """Do each kind of work in a child the first time; return the kinds."""
    done = []

    def call(function, *arguments, limit):
        if function in done:
            return function(*arguments)
        done.append(function)
        return call_in_child(function, *arguments, limit=limit)

    monkeypatch.setattr(correlations, "call_in_child", call)
    return done


@pytest.fixture
def run(tmp_path, page, judgements):
    """Return a function that runs the command on the made-up judgements and a set that does not exist."""

    def command(*options):
        sets = ["--set", f"{TITLE}={judgements}", "--set", f"Another set={tmp_path / 'missing.tsv'}"]
        return main([*sets, "--output", str(tmp_path / "results"), "--page", str(page), *map(str, options)])

    return command


def rows_of(page, name):
    """Return the rows of the page's tables whose first cell is this."""
    lines = page.read_text(encoding="utf-8").split("\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if row[0] == name]


def test_every_layer_is_correlated_and_what_is_missing_is_named(
    run, page, tmp_path, rows, tiny_model, tiny_bundle, all_layers_bundle, first_in_children
):
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "bertscore.json").write_text("{", encoding="utf-8")
    bundles = (f"whole={all_layers_bundle}", f"one-layer={tiny_bundle}", str(damaged))
    models = (f"tiny={tiny_model}", *bundles, "nobody/has-this")
    assert run(*(word for model in models for word in ("--model", model))) == 0
    assert first_in_children == [export_bundle, correlate_layers, measure_best]
    files = {
        file.name: msgspec.json.decode(file.read_bytes(), type=Record) for file in (tmp_path / "results").iterdir()
    }
    assert files.keys() == {
        "all-models--Another-set.json",
        *(
            f"{name}--fp32--Made-up-judgements.json"
            for name in ("tiny", "whole", "one-layer", "damaged", "nobody-has-this")
        ),
    }
    tiny, whole = (files[f"{name}--fp32--Made-up-judgements.json"] for name in ("tiny", "whole"))
    used = [row for row in rows if row[0] != "en-de"]
    assert tiny.left_out == ("en-de (another target language)",)
    assert {name: of["units"] for name, of in tiny.tuning["language_pairs"].items()} == {"de-en": 25, "fr-en": 25}

    names, _, segments, references, candidates, human = zip(*used, strict=True)
    with BERTScorer(all_layers_bundle, all_layers=True) as scorer:
        tuned = tune_layers(scorer, candidates, references, human, names, units=list(map(str, segments)))
        best = scorer.score(candidates, references).F[tuned.best_layer]
    is_german = np.array(names) == "de-en"
    tau = stats.kendalltau(np.array(human)[is_german], best[is_german]).statistic
    for record in (tiny, whole):
        layers = record.tuning["layers"]
        assert [one["f1"]["pearson"] for one in layers] == pytest.approx(
            [layer.f1.pearson for layer in tuned.layers], abs=1e-6
        )
        assert (record.tuning["best_layer"], record.max_length) == (tuned.best_layer, scorer.manifest.max_length)
        assert tuple(record.tuning["not_worse"]) == tuned.not_worse
        assert record.best.measures["de-en"]["kendall"].value == pytest.approx(tau, abs=5e-3)  # a pair may nearly tie
        mean = record.best.measures[MEAN]
        assert mean["pearson"].value == pytest.approx(tuned.best_pearson, abs=1e-5)
        assert -1 <= mean["kendall"].low < mean["kendall"].value < mean["kendall"].high <= 1
        assert record.best.pairs_per_second > 0
        assert record.best.peak_mb > 20
    assert (tiny.best.is_cut, whole.best.is_cut) == (True, False)
    assert tiny.best.bundle_mb < whole.best.bundle_mb

    text = page.read_text(encoding="utf-8")
    assert "\nold\n" not in text
    assert text.startswith("# Title\n")
    assert text.endswith("The end.\n")
    pearson = f"{tiny.best.measures[MEAN]['pearson'].value:.3f}"
    assert [cells[5].startswith(pearson) for cells in rows_of(page, "tiny")] == [True]
    assert rows_of(page, "all models") == [["all models", "all", "Another set", "missing.tsv is no file or folder"]]
    [one_layer], [unknown], [of_damaged] = (rows_of(page, name) for name in ("one-layer", "nobody/has-this", "damaged"))
    assert "bertscore.json" in of_damaged[3]
    assert str(tmp_path) not in of_damaged[3]
    assert "--all-layers" in one_layer[3]
    assert unknown[1:3] == ["fp32", TITLE]
    assert unknown[3].startswith("Cannot load the configuration of the model: ")


def test_results_are_kept_until_something_changes(run, page, capsys, judgements, tmp_path, all_layers_bundle):
    model = ("--model", f"whole={all_layers_bundle}")
    assert run(*model) == 0
    first = page.read_bytes()
    [file] = (tmp_path / "results").glob("whole*.json")
    before = file.stat().st_mtime_ns
    capsys.readouterr()

    assert run(*model) == 0
    output = capsys.readouterr()
    assert output.out.startswith("0 measured, 1 kept, 1 not measured.")
    assert f"whole, fp32, {TITLE}: kept" in output.err
    assert (file.stat().st_mtime_ns, page.read_bytes()) == (before, first)

    file.write_bytes(file.read_bytes()[:100])  # as if the disk had been full
    lines = judgements.read_text(encoding="utf-8").splitlines(keepends=True)
    judgements.write_text("".join(line for line in lines if int(f"0{line.split()[2]}" if line[0] != "l" else 0) < 15))
    assert run(*model) == 0
    assert capsys.readouterr().out.startswith("1 measured, 0 kept")
    limited = msgspec.json.decode(file.read_bytes(), type=Record)
    assert {of["units"] for of in limited.tuning["language_pairs"].values()} == {15}
    assert "Fewer than 20 are too few" in page.read_text(encoding="utf-8")

    assert run("--model", "whole=nobody/has-this") == 0  # the earlier result stays
    assert "kept: it cannot be measured again: Cannot load the configuration" in capsys.readouterr().err
    assert file.read_bytes() == msgspec.json.format(msgspec.json.encode(limited), indent=1) + b"\n"

    judgements.unlink()
    assert run(*model) == 0
    assert "made-up.tsv is no file or folder" in page.read_text(encoding="utf-8")
    assert rows_of(page, "whole")


def test_a_stop_keeps_all_results_but_the_one_in_work(
    run, page, tmp_path, judgements, monkeypatch, capsys, all_layers_bundle
):
    call, calls = correlations.call_in_child, []

    def stop_at_the_third(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return call(*arguments, **options)

    options = (
        "--model",
        f"whole={all_layers_bundle}",
        "--set",
        f"Second={shutil.copy(judgements, tmp_path / 'b.tsv')}",
    )
    monkeypatch.setattr(correlations, "call_in_child", stop_at_the_third)
    assert run(*options) == 130
    assert "Stopped after 1 measured" in capsys.readouterr().err
    assert {file.name for file in (tmp_path / "results").iterdir()} == {
        "all-models--Another-set.json",
        "whole--fp32--Made-up-judgements.json",
    }
    assert run(*options) == 0
    assert capsys.readouterr().out.startswith("1 measured, 1 kept, 1 not measured.")
    first = (tmp_path / "results" / "whole--fp32--Made-up-judgements.json").read_bytes()
    layer = msgspec.json.decode(first, type=Record).tuning["best_layer"]
    assert f"Layer {layer}, the best on {TITLE}, has r = " in page.read_text(encoding="utf-8")


def test_variants_and_precisions_have_rows_of_their_own(run, page, tiny_model):
    matchings = ("--matching", "code-bert-score", "doc-bert-score")
    assert run("--model", f"tiny={tiny_model}", "--precision", "fp32", "fp16", *matchings) == 0
    assert {row[1] for row in rows_of(page, "tiny")} == {"fp32", "fp16", "fp32 with doc-bert-score"}
    [variant] = rows_of(page, "tiny with code-bert-score")
    assert variant[1] == "fp32"
    *_, refused = rows_of(page, "tiny")
    assert refused[1] == "fp32 with doc-bert-score"
    assert "there are no documents" in refused[3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "="], "'=' is neither MODEL nor NAME=MODEL"),
        (["--set", "title"], "'title' is not TITLE=PATH"),
        (["--precision", "fp64"], "invalid choice: 'fp64'"),
        (["--page", "nowhere.md"], "nowhere.md is no page with the marks"),
    ],
)
def test_wrong_options_are_refused_in_one_line(run, capsys, options, message):
    with pytest.raises(SystemExit) as stopped:
        run(*options)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err.strip().split("\n")[-1]


def test_nothing_at_all_is_a_failure_and_leaves_the_page(run, page, capsys, judgements, all_layers_bundle):
    before = page.read_bytes()
    judgements.write_text("lang_pair\tsystem\nde-en\tone\n", encoding="utf-8")
    assert run("--model", all_layers_bundle) == 1
    assert page.read_bytes() == before
    output = capsys.readouterr()
    assert "0 measured, 0 kept, 2 not measured." in output.out
    assert "made-up.tsv" in output.err
    assert "Nothing is measured" in output.err


@pytest.mark.parametrize(("load", "is_busy"), [("0.40", False), ("0.60", True)])
def test_speeds_on_a_busy_machine_are_not_for_comparison(load, is_busy):
    machine = {"cores usable": "2", "load at the start": load}
    counts = {"de-en": {"n": 2, "units": 2, "left_out": None}}
    f1 = {"pearson": 0.5, "low": 0.4, "high": 0.6, "language_pairs": {}}
    layer = {"layer": 0, "f1": f1, "loss": 0, "loss_high": 0}
    tuning = {"language_pairs": counts, "best_layer": 0, "best_pearson": 0.5, "optimism": None, "not_worse": []}
    record = Record(TITLE, "model", "fp32", machine=machine, tuning={**tuning, "layers": [layer]})
    assert ("The machine was busy" in as_markdown([record])) == is_busy
