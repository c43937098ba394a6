"""What a comparison shows: the same stars in every form, and a paragraph for a paper."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from bertscore_onnx import __version__
from bertscore_onnx_evaluation import compare, paired_permutation
from bertscore_onnx_evaluation.table import latex_text
from tests.support.html_tree import tree_of
from tests.support.scores import WORDS


def four_systems(**options):
    rng = np.random.default_rng(3)
    metrics = {"comet": (0.8, 0.1, 0.02), "chrF": (50, 8, 1), "TER": (40, 9, -1)}
    names = ("base", "A_b", "big", "D&E")
    scores = {
        metric: {
            name: mean + better * row + rng.normal(0, spread, 200) for row, name in enumerate(names)
        }
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
    rows = [
        line.strip().removesuffix(r" \\") for line in systems.splitlines() if line.count(" & ") == 6
    ][1:]
    for row, line in zip(rows, text, strict=True):
        cells = re.sub(r"[$\\]|[{}^]", "", row).replace("--", "-").replace(" & ", " ").split()
        assert cells == line.split()[: len(cells)]
        assert ("*" in row) == ("*" in line)
    assert [metric.title in pair for metric, pair in zip(found.metrics, pairs, strict=True)] == [
        True
    ] * 3
    for words in (
        r"\multicolumn{7}{@{}l}{TER $\downarrow$} \\",
        r"D\&E",
        r"\label{tab:systems}",
        "after Holm's correction for 6 comparisons; p is not corrected for the 3 metrics; 200 "
        "segments.",
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
    "equal, with a margin": {"scores": EQUAL, "margin": 0.5, "score_range": (-9, 9)},
    "three": {"scores": THREE},
    "pairs": {"scores": THREE, "all_pairs": True},
    "few segments": {"scores": {name: scores[:6] for name, scores in THREE.items()}},
    "three segments": {
        "scores": {name: scores[:3] for name, scores in THREE.items()},
        "margin": 0.1,
        "score_range": (-9, 9),
    },
    "few that differ": {"scores": FEW},
    "few that differ, with a margin": {"scores": FEW, "margin": 0.2, "score_range": (-9, 9)},
    "a wide margin": {"scores": THREE, "margin": 3, "score_range": (-9, 9)},
    "zeros and ones": {"scores": BINARY},
    "runs": {"scores": RUNS},
    "runs of unequal number": {"scores": RUNS | {"base": NOISE[:3]}},
    "runs whose means differ": {
        "scores": {name: scores + np.array([[0], [9]]) for name, scores in RUNS.items()}
    },
    "segments left out": {"scores": GAPS, "missing": "drop"},
    "groups": {"scores": THREE, "by": ["news"] * 25 + ["talks"] * 25 + ["web"] * 10},
    "documents": {"scores": THREE, "documents": [number // 2 for number in range(60)]},
    "unequal documents": {"scores": THREE, "documents": UNEQUAL},
    "two metrics": {"scores": {"comet": THREE, "ter": BINARY}, "lower_is_better": ["ter"]},
    "few swaps": {"scores": THREE, "num_resamples": 10},
    "texts": {
        "candidates": TEXTS,
        "references": [["the cat sat", "a cat"]] * 30,
        "metrics": ["bleu"],
    },
}


def drawn_situation(seed):
    """Draw systems, and what may be said of them: scores of any kind, runs, documents, groups,
    margins, texts.
    """
    rng = np.random.default_rng([71, seed])
    number, segments = int(rng.integers(2, 5)), int(rng.choice([8, 30, 60]))
    is_alone = seed % 10 == 9
    names = ("base", "a", "b", "c")[: 1 if is_alone else number]
    shape = (len(names), segments)
    shift = rng.normal(0, 0.1, (len(names), 1))
    kind = ("0 and 1", "grades", "F", "errors", "texts")[seed % 5]
    scores = {
        "0 and 1": (rng.random(shape) < 0.6 + shift).astype(float),
        "grades": np.clip(np.rint(rng.normal(3.5 + 5 * shift, 1, shape)), 1, 5),
        "F": rng.normal(0.85, 0.02, segments) + rng.normal(shift / 9, 0.01, shape),
        "errors": rng.poisson(2 + 5 * np.abs(shift), shape).astype(float),
        "texts": shift,
    }[kind]
    options = {"num_resamples": 60, "all_pairs": not is_alone and bool(rng.integers(2))}
    if kind == "errors":
        options |= {"lower_is_better": ["score"]}
    if kind == "texts":
        references = [" ".join(rng.choice(WORDS.split(), 8)) for _ in range(segments)]
        options["references"] = references
        options["metrics"] = [str(rng.choice(["bleu", "chrf", "ter"]))]
        options["candidates"] = {
            name: [
                " ".join(word for word in text.split() if rng.random() < 0.7) or "a"
                for text in references
            ]
            for name in names
        }
    elif seed % 3 == 0:
        options["scores"] = {
            name: np.stack([of_system, rng.permutation(of_system), of_system])
            for name, of_system in zip(names, scores, strict=True)
        }
    else:
        options["scores"] = dict(zip(names, scores, strict=True))
    if seed % 4 == 1:
        options["documents"] = np.minimum(np.arange(segments) // 2, 22).tolist()
    if seed % 4 == 2 and segments > 8:
        options["by"] = ["news" if row % 5 else "talks" for row in range(segments)]
    if not is_alone and seed % 2:
        spread = 30 if kind == "texts" else float(np.ptp(scores))
        options["margin"] = spread * float(rng.choice([0.002, 0.05, 0.3, 0.9]))
        if kind != "texts":
            options["score_range"] = (0, 30)
    return options


SITUATIONS |= {f"drawn {seed}": drawn_situation(seed) for seed in range(40)}

MARGIN = re.compile(
    r"(?:(\w+): )?\w+: (?:[^:]*\. )?(Equivalent|At most|At least|Up to) [^(]*\((97\.5 %[^)]*)\)"
)


def check_margins(found, record):
    """Compare the level of each sentence on a margin with what it rests on, and return how many
    sentences there are; test_margins.py compares their words with numbers.
    """
    [metric] = found.metrics
    num_rivals = len(found.systems) - 1
    sentences = [match.groups() for note in record["notes"] if (match := MARGIN.match(note))]
    for group, kind, level in sentences:
        claims = num_rivals * (len(metric.groups) if group else 1)
        is_of_two = kind == "Equivalent"
        method = "97.5 % each" if is_of_two else "97.5 %"
        method += f" for all {claims}" if claims > 1 else ""
        method += ", Gaffke's bounds" if is_of_two else ", Gaffke's bound"
        low, high = metric.score_range
        end = f"if all scores are from {low:g} to {high:g}"
        if metric.is_of_corpus:
            end = f"no guarantee for {metric.title}"
        assert level == f"{method}, {end}"
    return len(sentences)


def said(*texts):
    """Return what texts say, without typography."""
    return (
        re.sub(r"\s+", " ", " ".join(texts))
        .replace("\N{MINUS SIGN}", "-")
        .replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    )


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_output_says_the_same_and_nothing_that_numbers_refute(situation, monkeypatch):
    monkeypatch.setenv("COLUMNS", "5000")
    options = SITUATIONS[situation]
    found = compare(**options)
    text = found.table()
    record = json.loads(found.to_json())
    legend = record["legend"].removeprefix("* ")
    notes = [*record["notes"], *record["warnings"]]
    signatures = [*record["signatures"].values()]
    everything = [*record["headlines"].values(), *notes, *signatures, legend]
    latex = found.table("latex")
    outputs = [
        (text, everything),
        (latex.replace("\n% ", "\n"), everything),
        (re.sub(r"\\(.)", r"\1", found.table("markdown")), everything),
        (found.table("tsv"), [*notes, *signatures]),
        (found.methods, [*notes, *signatures]),
        ("".join(tree_of(found._repr_html_()).itertext()), [*notes, legend]),
    ]
    if len(found.systems) > 1:
        outputs.append(("".join(tree_of(found.to_html()).itertext()), everything))
        outputs.append((found.figure().get_supxlabel(), [*notes, *signatures, legend]))
    for output, sentences in outputs:
        shown = said(output)
        for sentence in sentences:
            assert said(sentence) in shown or said(latex_text(sentence)) in shown, output

    for line in (*text.splitlines(), *latex.replace("$", "").splitlines()):
        is_starred = "*" in line and "p < 0.05" not in line
        ends = re.findall(r"(\S+) to (\S+)", line) if is_starred else []
        assert all(float(end) for interval in ends for end in interval), line
    marked = {
        one["name"]
        for one in record["systems"]
        for values in one["metrics"].values()
        if values["significant"]
    }
    for system in record["systems"]:
        verdicts = " ".join(values["verdict"] or "" for values in system["metrics"].values())
        assert (" is better than " in verdicts or " is worse than " in verdicts) == (
            system["name"] in marked
        )
    if options.get("margin"):
        groups = len(found.metrics[0].groups)
        assert check_margins(found, record) == (len(found.systems) - 1) * (1 + groups)


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        ("few segments", "Tested on 6 segments only."),
        ("equal", "None of 60 segments differs; on others they may."),
        ("few that differ", "Only 3 of 60 segments differ, too few to rely on"),
        (
            "zeros and ones",
            "* p < 0.05: McNemar's test, exact, intervals by 10,000 swaps, seed 12345, "
            "two-sided, after",
        ),
        ("runs", "means of 2 runs"),
        ("segments left out", "1 segment left out"),
        ("groups", "Not tested, since they have fewer than 20 segments: web."),
        ("unequal documents", "which tell as much as 2.8 of one size"),
        ("two metrics", "ter (lower is better)"),
        ("few swaps", "no p can be below 0.05"),
        ("texts", "30 segments with 2 references"),
    ],
)
def test_a_situation_has_something_to_say(situation, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "5000")
    assert words in compare(**SITUATIONS[situation]).table()


def test_the_methods_name_test_unit_correction_and_seed():
    scores = np.random.default_rng(1).normal(size=(3, 40))
    systems = dict(zip(("base", "a", "b"), scores, strict=True))
    found = compare(scores={"COMET": systems}, documents=["x", "y"] * 20, seed=7)
    for words in (
        "We compared a and b with base by COMET on 40 segments of 2 documents.",
        "if p < 0.05: paired permutation test by 2 documents, all swaps, two-sided, after Holm's",
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
    found = compare(
        scores={name: {"base": scores[0], "new": scores[1]}}, margin=0.5, score_range=(0, 1)
    )
    assert f"We compared new with base by {name} on 40 segments." in found.methods
    assert found.bibtex.startswith("@software{bertscore-onnx,")
    assert f"\n\n{name}" in found.table()
    assert "no guarantee" not in found.table()


@pytest.mark.parametrize(
    "change", [lambda scores: scores, lambda scores: 10 * scores, lambda scores: scores + 7]
)
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
        "base and noisy score best, equally. base is significantly better than last. noisy is "
        "not significantly better than last."
    )
    assert (
        compare(scores={"a": flat, "b": flat}).to_dict()["headlines"]["score"]
        == "a and b score best, equally."
    )


@pytest.mark.parametrize("seed", range(30))
def test_the_name_of_the_test_is_that_of_what_ran(seed):
    rng = np.random.default_rng(seed)
    segments = int(rng.choice([10, 40, 200]))
    base = rng.normal(size=segments)
    differences = rng.choice([[-0.5, 0.5], [-0.5, 0.0]][seed % 2], (2, segments))
    differences[1] *= rng.choice([1, 2], segments)  # of one size, and of two
    is_tested_by_signs = [True, len(set(np.abs(differences[1])) - {0}) < 2]
    for is_sign, new in zip(is_tested_by_signs, base + differences, strict=True):
        found = compare(scores={"base": base, "new": new}, num_resamples=99)
        [metric] = found.metrics
        num_differing = metric.systems[1].differing
        is_exact = num_differing <= 13
        expected = "sign" if is_sign else "all swaps" if is_exact else "swaps"
        assert metric.systems[1].test == (expected if num_differing else None)
        if num_differing:
            assert (
                ("exact sign test" in found.legend) == ("test:sign" in found.signature) == is_sign
            )
            assert ("resamples:99" in found.signature) != is_sign


def test_a_small_difference_is_not_rounded_to_zero():
    base = np.random.default_rng(2).uniform(20, 90, 60)
    found = compare(
        scores={"base": base, "new": base + np.random.default_rng(3).normal(0.003, 0.001, 60)}
    )
    [_, new] = found.metrics[0].systems
    interval = f"{new.delta_low:+.5f} to {new.delta_high:+.5f}"
    assert re.search(
        rf"^new +\S+ +{re.escape(f'{new.delta:+.5f}  {interval}')}  .0001\*",
        found.table(),
        re.MULTILINE,
    )


def test_text_and_json_have_ascii_signs_only():
    found = compare(**SITUATIONS["drawn 6"])
    signs = set("−–—’‘“”")
    assert not signs & {*found.table(), *found.to_json()}
