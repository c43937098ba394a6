"""`reproduce.correlations` with a tiny model and made-up judgements: its numbers and its page."""

import csv
import random

import msgspec
import numpy as np
import pytest
from scipy import stats

from bertscore_onnx import BERTScorer
from bertscore_onnx_evaluation.layers import tune_layers
from harness.processes import call_in_child
from harness.results import BEGIN, END
from reproduce import correlations
from reproduce.correlations import main
from reproduce.encoder_page import MEAN, Record
from reproduce.layer_correlation import measure_best
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
                found.append(
                    (
                        language_pair,
                        system,
                        segment,
                        " ".join(reference),
                        " ".join(candidate),
                        human,
                    )
                )
    return found


@pytest.fixture
def judgements(rows, tmp_path):
    file = tmp_path / "made-up.tsv"
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target, delimiter="\t")
        writer.writerows(
            [("lang_pair", "system", "segment", "reference", "candidate", "human"), *rows]
        )
    return file


@pytest.fixture
def page(tmp_path):
    file = tmp_path / "page.md"
    file.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n", encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def children(monkeypatch):
    """Do the work of children here, where what it needs is loaded already, but for the first that
    measures a speed.
    """
    done = []

    def call(function, *arguments, limit):
        done.append(function)
        if done.count(function) == 1 and function is measure_best:
            return call_in_child(function, *arguments, limit=limit)
        return function(*arguments)

    monkeypatch.setattr(correlations, "call_in_child", call)


@pytest.fixture
def run(tmp_path, page, judgements):
    """Return a function that runs the command on the made-up judgements and a set that does not
    exist.
    """

    def command(*options):
        sets = [
            "--set",
            f"{TITLE}={judgements}",
            "--set",
            f"Another set={tmp_path / 'missing.tsv'}",
        ]
        return main(
            [*sets, "--output", str(tmp_path / "results"), "--page", str(page), *map(str, options)]
        )

    return command


def rows_of(page, name):
    lines = page.read_text(encoding="utf-8").split("\n")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    return [row for row in rows if row[0] == name]


def test_every_layer_is_correlated_and_what_is_missing_is_named(
    run, page, tmp_path, rows, tiny_model, tiny_bundle, all_layers_bundle
):
    models = (f"tiny={tiny_model}", f"whole={all_layers_bundle}", f"one-layer={tiny_bundle}")
    assert run(*(word for model in models for word in ("--model", model))) == 0
    tiny, whole = (
        msgspec.json.decode(
            (tmp_path / f"results/{name}--fp32--Made-up-judgements.json").read_bytes(), type=Record
        )
        for name in ("tiny", "whole")
    )
    assert tiny.left_out == ("en-de (another target language)",)
    assert {name: of["units"] for name, of in tiny.tuning["language_pairs"].items()} == {
        "de-en": 25,
        "fr-en": 25,
    }

    names, _, segments, references, candidates, human = zip(
        *(row for row in rows if row[0] != "en-de"), strict=True
    )
    with BERTScorer(all_layers_bundle, all_layers=True) as scorer:
        tuned = tune_layers(
            scorer, candidates, references, human, names, units=list(map(str, segments))
        )
        best = scorer.score(candidates, references).F[tuned.best_layer]
    is_german = np.array(names) == "de-en"
    tau = stats.kendalltau(np.array(human)[is_german], best[is_german]).statistic
    for record in (tiny, whole):
        of_layers = [one["f1"]["pearson"] for one in record.tuning["layers"]]
        assert of_layers == pytest.approx([layer.f1.pearson for layer in tuned.layers], abs=1e-6)
        assert (record.tuning["best_layer"], record.max_length) == (
            tuned.best_layer,
            scorer.manifest.max_length,
        )
        # a pair may nearly tie
        assert record.best.measures["de-en"]["kendall"].value == pytest.approx(tau, abs=5e-3)
        assert record.best.measures[MEAN]["pearson"].value == pytest.approx(
            tuned.best_pearson, abs=1e-5
        )
    assert (tiny.best.is_cut, whole.best.is_cut) == (True, False)

    text = page.read_text(encoding="utf-8")
    assert "\nold\n" not in text
    assert text.endswith("The end.\n")
    pearson = f"{tiny.best.measures[MEAN]['pearson'].value:.3f}"
    at_a_glance, at_best_layer = rows_of(page, "tiny")
    assert (at_a_glance[-1], at_best_layer[5][:5]) == (f"{pearson} at {tuned.best_layer}", pearson)
    assert rows_of(page, "all models") == [
        ["all models", "all", "Another set", "missing.tsv is no file or folder"]
    ]
    [one_layer] = rows_of(page, "one-layer")
    assert "--all-layers" in one_layer[3]


def test_results_are_kept_until_their_files_are_deleted(run, page, tmp_path, all_layers_bundle):
    model = ("--model", f"whole={all_layers_bundle}")
    assert run(*model) == 0
    first = page.read_bytes()
    [file] = (tmp_path / "results").glob("whole*.json")
    before = file.stat().st_mtime_ns
    assert run(*model) == 0
    assert (file.stat().st_mtime_ns, page.read_bytes()) == (before, first)
    file.unlink()
    assert run(*model) == 0
    assert file.exists()


def test_nothing_at_all_is_a_failure_and_leaves_the_page(run, page, judgements, all_layers_bundle):
    before = page.read_bytes()
    judgements.write_text("lang_pair\tsystem\nde-en\tone\n", encoding="utf-8")
    assert run("--model", all_layers_bundle) == 1
    assert page.read_bytes() == before
