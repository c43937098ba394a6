"""What a comparison shows: the same stars in every form, and a paragraph for a paper."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from bertscore_onnx import __version__
from bertscore_onnx.tables.table import latex_text
from bertscore_onnx_evaluation import compare, paired_permutation
from tests.support.html_tree import tree_of


def random_comparison(seed):
    rng = np.random.default_rng(seed)
    number, segments = int(rng.integers(2, 6)), int(rng.integers(1, 60))
    scores = rng.normal(size=segments) + rng.normal(size=(number, segments)) + rng.normal(0, 0.3, (number, 1))
    if seed % 3 == 0:
        scores = np.rint(scores)
    systems = {f"system-{row}": of_system for row, of_system in enumerate(scores)}
    return compare(
        scores=systems,
        lower_is_better=["score"] if seed % 2 else [],
        all_pairs=bool(rng.integers(2)),
        num_resamples=int(rng.integers(20, 300)),
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_form_has_the_same_stars(seed):
    found = random_comparison(seed)
    record = found.to_dict()
    marked = {one["name"] for one in record["systems"] if one["metrics"]["score"]["significant"]}
    text = found.table().split("\n\n")[1].splitlines()[2:]
    assert {line.split()[0] for line in text if "*" in line} == marked
    latex = [line for line in found.table("latex").splitlines() if line.lstrip().startswith("system-")]
    assert {line.split()[0] for line in latex if "*" in line} == marked
    page = found.to_html()
    assert page.count('<span class="chip better">') + page.count('<span class="chip worse">') == len(marked)
    for system in record["systems"]:
        verdict = system["metrics"]["score"]["verdict"] or ""
        assert (" is better than " in verdict or " is worse than " in verdict) == (system["name"] in marked)


def four_systems(**options):
    rng = np.random.default_rng(3)
    metrics = {"comet": (0.8, 0.1, 0.02), "chrF": (50, 8, 1), "TER": (40, 9, -1)}
    names = ("base", "A_b", "big", "D&E")
    scores = {
        metric: {name: mean + better * row + rng.normal(0, spread, 200) for row, name in enumerate(names)}
        for metric, (mean, spread, better) in metrics.items()
    }
    return compare(scores=scores, lower_is_better=["TER"], **options)


def test_text_begins_with_the_verdict_and_fits_a_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = four_systems(all_pairs=False)
    lines = found.table().splitlines()
    best = found.metrics[0].systems[found.metrics[0].ranked[0]].name
    assert re.match(rf"comet.*: {best} scores best: significantly better than ", lines[0])
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("-----") for line in lines) == 1
    assert found.table().count(" is better than ") == 0
    assert all(
        found.table().count(f"{system.score:.{metric.digits}f}")
        for metric in found.metrics
        for system in metric.systems
    )


def test_latex_has_the_numbers_of_the_text_and_the_pairs(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    found = four_systems(all_pairs=True)
    systems, *pairs = found.table("latex").split("\n\n")
    text = [line for line in found.table().split("\n\n")[1].splitlines()[2:] if "  " in line]
    rows = [line.strip().removesuffix(r" \\") for line in systems.splitlines() if line.count(" & ") == 4][1:]
    for row, line in zip(rows, text, strict=True):
        cells = re.sub(r"[$\\]|\^\{\*\}", "", row).replace("--", "-").split(" & ")
        assert cells[:4] == line.split()[:4]
        assert cells[4] == " ".join(line.split()[4:7]).rstrip(" ") or cells[4] == ""
        assert ("*" in row) == ("*" in line)
    assert [metric.title in pair for metric, pair in zip(found.metrics, pairs, strict=True)] == [True] * 3
    for words in (
        r"\multicolumn{5}{@{}l}{TER $\downarrow$} \\",
        r"D\&E",
        r"\label{tab:systems}",
        "after Holm's correction for 6 comparisons; p is not corrected for the 3 metrics; 200 segments.",
        r"Each 95 \% interval is by itself, not corrected.",
        "% signature of TER: TER|scores:given|test:permutation|resamples:10000|seed:12345",
    ):
        assert words in systems
    assert [pair.count("$>$") - 1 for pair in pairs] == [
        sum(pair.p_holm < 0.05 for pair in metric.pairs) for metric in found.metrics
    ]
    assert systems.isascii()
    assert systems.count("{") == systems.count("}")


LONG = "a model whose name is as long as a line of text in one column of a paper"


@pytest.mark.parametrize(
    ("name", "environment"), [("tuned", "table"), (LONG, "table*"), ("[2cm] \x00\n|~^_{", "table")]
)
def test_a_latex_table_fits_its_column(name, environment, tmp_path):
    rng = np.random.default_rng(4)
    scores = {one: 0.8 + rng.normal(0, 0.1, 30) for one in ("rules", "small", "large", name)}
    latex = compare(scores={"bertscore": scores, "chrf": scores}, all_pairs=True).table("latex")
    assert f"\\begin{{{environment}}}" in latex
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no TeX")
    paper = r"\documentclass[twocolumn]{article}\usepackage{booktabs}\begin{document}"
    (tmp_path / "paper.tex").write_text(f"{paper}\n{latex}\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    log = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "Overfull" not in log


NOISE = np.random.default_rng(5).normal(size=(4, 60))
EQUAL = {"base": NOISE[0], "a": NOISE[0]}
THREE = {"base": NOISE[0], "a_1": NOISE[1] + 1, "b": NOISE[2]}
FEW = {"base": NOISE[0], "new": NOISE[0] + (np.arange(60) < 3)}
BINARY = {name: np.where(scores > 0, 1, 0) for name, scores in THREE.items()}
RUNS = {name: np.stack([scores, scores + NOISE[3]]) for name, scores in THREE.items()}
GAPS = {"base": NOISE[0], "new": np.where(np.arange(60) == 7, np.nan, NOISE[1])}
UNEQUAL = [min(number, 25) for number in range(60)]
TEXTS = {"base": ["a cat sat", "the dog ran off"] * 15, "new": ["the cat sat", "the dog ran"] * 15}
SITUATIONS = {
    "two": {"scores": EQUAL | {"a": NOISE[1]}},
    "equal": {"scores": EQUAL},
    "equal, with a margin": {"scores": EQUAL, "margin": 0.5, "worst": -9},
    "three": {"scores": THREE},
    "pairs": {"scores": THREE, "all_pairs": True},
    "few segments": {"scores": {name: scores[:6] for name, scores in THREE.items()}},
    "three segments": {"scores": {name: scores[:3] for name, scores in THREE.items()}, "margin": 0.1, "worst": -9},
    "few that differ": {"scores": FEW},
    "few that differ, with a margin": {"scores": FEW, "margin": 0.2, "worst": -9},
    "a wide margin": {"scores": THREE, "margin": 3, "worst": -9},
    "zeros and ones": {"scores": BINARY},
    "runs": {"scores": RUNS},
    "runs of unequal number": {"scores": RUNS | {"base": NOISE[:3]}},
    "runs whose means differ": {"scores": {name: scores + np.array([[0], [9]]) for name, scores in RUNS.items()}},
    "segments left out": {"scores": GAPS, "missing": "drop"},
    "groups": {"scores": THREE, "by": ["news"] * 25 + ["talks"] * 25 + ["web"] * 10},
    "documents": {"scores": THREE, "documents": [number // 2 for number in range(60)]},
    "unequal documents": {"scores": THREE, "documents": UNEQUAL},
    "two metrics": {"scores": {"comet": THREE, "ter": BINARY}, "lower_is_better": ["ter"]},
    "few swaps": {"scores": THREE, "num_resamples": 10},
    "texts": {"candidates": TEXTS, "references": [["the cat sat", "a cat"]] * 30, "metrics": ["bleu"]},
}


def said(*texts):
    """Return what texts say, without typography."""
    return (
        re.sub(r"\s+", " ", " ".join(texts))
        .replace("\N{MINUS SIGN}", "-")
        .replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    )


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_output_has_the_warnings_and_notes_of_the_text(situation, monkeypatch):
    monkeypatch.setenv("COLUMNS", "5000")
    found = compare(**SITUATIONS[situation])
    *_, notes, legend = found.table().split("\n\n")
    notes = [] if "-----" in notes else [line.removeprefix("Warning: ") for line in notes.splitlines()]
    legend, *signatures = legend.splitlines()
    record = json.loads(found.to_json())
    figure = found.figure()
    outputs = {
        "json": said(*record["notes"], *record["warnings"]),
        "methods": said(found.methods),
        "page": said("".join(tree_of(found.to_html()).itertext())),
        "notebook": said("".join(tree_of(found._repr_html_()).itertext())),
        "figure": said(figure.get_supxlabel()),
        "latex": said(found.table("latex").replace("\n% ", "\n")),
        "tsv": said(found.table("tsv")),
    }
    for note in notes:
        for output, shown in outputs.items():
            assert said(note) in shown or said(latex_text(note)) in shown, output
    assert record["legend"] == legend
    for output in ("page", "notebook", "figure"):
        assert legend.removeprefix("* ") in outputs[output]
    assert said(latex_text(legend)) in outputs["latex"]
    for output in ("methods", "page", "figure", "latex", "tsv"):
        assert all(signature in outputs[output] for signature in signatures)


def test_the_situations_have_something_to_say(monkeypatch):
    monkeypatch.setenv("COLUMNS", "5000")
    shown = {situation: compare(**options).table() for situation, options in SITUATIONS.items()}
    for situation, words in {
        "few segments": "Tested on 6 segments only.",
        "equal": "None of 60 segments differs; on others they may.",
        "few that differ": "Only 3 of 60 segments differ, too few to rely on",
        "zeros and ones": "McNemar's",
        "runs": "means of 2 runs",
        "segments left out": "1 segment left out",
        "groups": "Not tested, since they have fewer than 20 segments: web.",
        "unequal documents": "whose sizes differ so much",
        "two metrics": "ter (lower is better)",
        "few swaps": "no p can be below 0.05",
        "texts": "30 segments with 2 references",
    }.items():
        assert words in shown[situation], situation


def test_the_methods_name_test_unit_correction_and_seed():
    scores = np.random.default_rng(1).normal(size=(3, 40))
    systems = dict(zip(("base", "a", "b"), scores, strict=True))
    found = compare(scores={"COMET": systems}, documents=["x", "y"] * 20, seed=7)
    for words in (
        "We compared a and b with base by COMET on 40 segments of 2 documents.",
        "a two-sided paired permutation test (all swaps of whole documents), with Holm's correction",
        f"bertscore-onnx {__version__} (COMET: COMET|scores:given|test:permutation|documents:2|",
    ):
        assert words in found.methods
    assert found.bibtex.startswith("@software{bertscore-onnx,")
    assert found.to_dict()["methods"] == found.methods


def test_the_entries_are_those_of_what_was_used():
    texts = {"base": ["a cat", "a dog"] * 10, "other": ["the cat", "a dog"] * 10}
    found = compare(texts, ["the cat", "a dog"] * 10, metrics=["bleu"])
    assert [line for line in found.bibtex.splitlines() if line.startswith("@")] == [
        "@inproceedings{post-2018-call,",
        "@software{bertscore-onnx,",
    ]


@pytest.mark.parametrize("name", ["bertscore", "bleu", "ter"])
def test_given_scores_are_no_scores_of_ours_by_their_name(name):
    """They may be P, or sentence BLEU: means, for which bounds hold."""
    scores = np.random.default_rng(1).uniform(0.4, 0.9, size=(2, 40))
    found = compare(scores={name: {"base": scores[0], "new": scores[1]}}, margin=0.5)
    assert f"We compared new with base by {name} on 40 segments." in found.methods
    assert found.bibtex.startswith("@software{bertscore-onnx,")
    assert f"\n\n{name}" in found.table()
    assert "no guarantee" not in found.table()


@pytest.mark.parametrize("change", [lambda scores: scores, lambda scores: 10 * scores, lambda scores: scores + 7])
def test_means_that_are_equal_but_for_rounding_are_equal(change):
    rng = np.random.default_rng(3)
    for seed in range(40):
        base = change(rng.integers(0, 11, 60) / (10 if seed % 2 else 3))
        scores = {"base": base, "new": rng.permutation(base), "worse": base - 0.1}
        found = compare(scores=scores, all_pairs=bool(seed % 3), num_resamples=999, seed=seed)
        _, new, _ = found.metrics[0].systems
        assert (new.delta, new.p, new.p_holm) == (0, 1, 1)
        assert found.table().startswith("base and new score best, equally")
        assert found.to_dict()["headlines"]["score"].startswith("base and new score best, equally")


def test_a_huge_score_hides_no_difference():
    base = np.full(51, 5.0)
    base[50] = 5e13
    scores = {"base": base, "worse": np.where(np.arange(51) < 50, 1, base)}
    [_, worse] = compare(scores=scores).metrics[0].systems
    assert (worse.differing, worse.lost, worse.tied) == (50, 50, 1)
    assert worse.p < 1e-14
    assert worse.delta == pytest.approx(-200 / 51)
    gains = np.array([1, 2, 3, -4, 5, -6, 7, 8, -9, 10] + [0] * 41)
    [with_it] = paired_permutation([base, base + gains]).p
    assert with_it == paired_permutation([np.zeros(51), gains]).p[0]


def test_systems_that_score_best_equally_have_a_verdict_each():
    noise = np.random.default_rng(1).normal(size=40)
    flat = np.full(40, 0.5)
    scores = {"base": flat, "noisy": 0.5 + noise - noise.mean(), "last": flat - 0.05}
    headline = compare(scores=scores, all_pairs=True).to_dict()["headlines"]["score"]
    assert headline == (
        "base and noisy score best, equally. base is significantly better than last. noisy is not significantly better "
        "than last."
    )
    assert compare(scores={"a": flat, "b": flat}).to_dict()["headlines"]["score"] == "a and b score best, equally."


def test_zeros_and_ones_are_tested_by_mcnemar():
    scores = {"base": [0, 1] * 20, "other": [1, 1] * 20}
    assert "the test is McNemar's, exact." in compare(scores=scores).table()
    assert "McNemar" not in compare(scores=scores, documents=["a", "b"] * 20).table()


def test_a_small_difference_is_not_rounded_to_zero():
    base = np.random.default_rng(2).uniform(20, 90, 60)
    found = compare(scores={"base": base, "new": base + np.random.default_rng(3).normal(0.003, 0.001, 60)})
    [_, new] = found.metrics[0].systems
    interval = f"{new.delta_low:+.5f} to {new.delta_high:+.5f}"
    assert re.search(rf"^new +\S+ +{re.escape(f'{new.delta:+.5f}  {interval}')}  0.0001\*", found.table(), re.MULTILINE)


def test_text_and_json_have_ascii_signs_only():
    found = random_comparison(4)
    signs = set("−–—’‘“”")
    assert not signs & {*found.table(), *found.to_json()}
