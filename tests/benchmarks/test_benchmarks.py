"""The benchmarks on a tiny model: contestants in processes of their own, the sums over rounds, and
reports.
"""

import random

import pytest

from benchmarks import gpu
from benchmarks.cases import (
    BF16,
    INT8,
    OPENVINO,
    OURS,
    PEER_FAST,
    SCRIPT,
    compare_throughput,
    on_cpu,
    ours,
    p_of_ours,
    p_of_peer,
)
from benchmarks.contest import PEER, Contest, Contestant
from benchmarks.engines import (
    ModelAlone,
    compare_systems,
    load_peer,
    load_script,
    load_torch,
    score_singly,
)
from benchmarks.flops import encode_flops
from benchmarks.report import DOCUMENT, as_markdown, case_as_markdown, marks, with_reports
from benchmarks.run import run_cases
from benchmarks.settings import Settings
from benchmarks.stages import OTHER, busy_seconds, profile, stage_shares
from bertscore_onnx import BERTScorer
from harness.models import Model
from harness.processes import ChildError
from harness.results import (
    Case,
    Goal,
    Report,
    Skipped,
    Timing,
    figure,
    percentile,
    ratio,
    read_report,
)
from harness.texts import altered, synthetic_pairs
from tests.support.processes import run_python

PREPARE = """
import sys
from unittest import mock
from benchmarks.engines import HostAlone, prepare
host = HostAlone(sys.argv[1], device="cpu")
with mock.patch("bertscore_onnx.encoding.session.OrtGraph.run") as compute:
    prepare(host, ["the cat sat"] * 3000, ["the cat"] * 3000)
print(compute.call_count)
"""
CANDIDATES = ["the cat sat", "a dog ran", "a red house", "it was not a tree", "is it", "the mat"]
REFERENCES = [
    "the cat sat on the mat",
    "dogs run",
    "the blue house",
    "it is a tree",
    "it is",
    "the mat",
]
PAIRS = {"candidates": CANDIDATES, "references": REFERENCES}


def test_ours_and_bert_score_are_compared(tiny_model, tiny_bundle, tmp_path):
    def fail():
        raise ChildError("Traceback:\nno such precision")

    model = Model("tiny-bert", "tiny-bert", tiny_model, 2, tmp_path, {"fp32": tiny_bundle})
    settings = Settings(rounds=2, left_out=[BF16, PEER_FAST, SCRIPT, OPENVINO])
    contestants = {**on_cpu(model, settings), INT8: Contestant("ours, int8", OURS, fail)}
    comparisons = [(OURS, PEER, 1000.0), (INT8, PEER, None)]
    case = compare_throughput(
        Case("a", "tiny"), model, contestants, (CANDIDATES, REFERENCES), settings, comparisons, 5
    )
    mine, theirs = case.timings
    assert (len(mine.seconds), len(theirs.seconds)) == (2, 2)
    assert mine.score_difference <= 1e-5
    assert all(0 < seconds < 60 for seconds in mine.processor_seconds + theirs.processor_seconds)
    assert (len(mine.processor_seconds), len(theirs.processor_seconds)) == (2, 2)
    assert 20 < mine.peak_memory_mb < theirs.peak_memory_mb
    faster, outside = case.figures
    assert not faster.met
    assert 0 < outside.median < 100
    assert case.encode_rate > 0
    assert {skipped.label: skipped.reason for skipped in case.skipped} == {
        contestants[BF16].label: "left out by --skip",
        contestants[PEER_FAST].label: "left out by --skip",
        contestants[SCRIPT].label: "left out by --skip",
        "ours, int8": "no such precision",
        contestants[OPENVINO].label: "left out by --skip",
    }


def test_the_script_scores_as_we_do(minilm, minilm_bundle):
    script = load_script(str(minilm_bundle), tokenizer=str(minilm / "tokenizer.json"))
    with BERTScorer(minilm_bundle) as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES)
    for of_scorer, of_script in zip(expected, script.score(CANDIDATES, REFERENCES), strict=True):
        assert of_script == pytest.approx(of_scorer.tolist(), abs=1e-5)


def test_a_contestant_that_fails_leaves_and_the_others_go_on(tiny_model, tiny_bundle, tmp_path):
    contestants = {
        "broken": Contestant("broken", OURS, lambda: "no/such/bundle", {"device": "cpu"}),
        "nowhere": Contestant("nowhere", OURS, lambda: "any", python="no/such/python"),
        OURS: ours(Model("tiny-bert", "tiny-bert", tiny_model, 2, tmp_path, {"fp32": tiny_bundle})),
    }
    contest = Contest(Case("a", "tiny"), contestants, "singly", PAIRS, 1).run(1)
    assert [len(calls) for calls in contest.results[OURS].rounds] == [6]
    broken, nowhere = contest.case.skipped
    assert "BundleNotFoundError: There is no folder 'no/such/bundle'" in broken.reason
    assert nowhere.reason.startswith("no/such/python cannot be started")


def test_the_model_alone_repeats_its_runs_and_does_nothing_else(tiny_bundle):
    alone = ModelAlone(str(tiny_bundle))
    with alone._scorer as scorer:
        _, recorded = score_singly(alone, CANDIDATES, REFERENCES)
        assert recorded == score_singly(scorer, CANDIDATES, REFERENCES)[1]
        alone._scorer = None
        assert score_singly(alone, CANDIDATES, REFERENCES)[1] == recorded


def test_the_clocks_see_every_stage_and_threads_share_moments(tiny_bundle):
    with BERTScorer(tiny_bundle) as scorer:
        _, shares = profile(lambda: scorer.score(["the cat sat"], ["a cat sat on the mat"]))
    assert all(share > 0 for share in shares.values()), shares
    shares = stage_shares([(0, 8, "encode"), (0, 4, "encode"), (6, 9, "match")], 0.0, 10.0)
    assert {stage: share for stage, share in shares.items() if share} == pytest.approx(
        {"encode": 0.7, "match": 0.2, OTHER: 0.1}
    )


def test_on_a_gpu_every_moment_of_the_model_counts_once(tiny_bundle):
    assert busy_seconds([(5, 6), (0, 2), (1, 3), (1.5, 2)]) == 4
    assert busy_seconds([]) == 0
    with BERTScorer(tiny_bundle) as scorer:
        seconds, shares = profile(
            lambda: scorer.score(CANDIDATES * 99, REFERENCES * 99), on_cpu=False
        )
    assert 0 < shares["encode"] < 1
    assert seconds > 0


def test_both_sides_of_a_case_do_the_same_work(tiny_bundle):
    candidates, references = synthetic_pairs(60)
    draw = random.Random(1)  # noqa: S311 -- made-up texts
    systems = [[altered(text, draw) for text in candidates] for _ in range(3)]
    assert p_of_ours(systems, references) == p_of_peer(systems, references)
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        _, compared = compare_systems(scorer, [CANDIDATES, REFERENCES], REFERENCES, test=True)
        _, scored = compare_systems(scorer, [CANDIDATES, REFERENCES], REFERENCES, test=False)
    assert compared == pytest.approx(scored, abs=1e-6)


def test_operations_are_counted_as_by_hand():
    # a token: 2·(4·2² + 2·2·3) = 56 for the products, and 4·2 = 8 for the attention to each token
    # of its text
    assert encode_flops([1], layers=1, hidden=2, intermediate=3) == 64
    assert encode_flops([10, 2], layers=3, hidden=2, intermediate=3) == 3 * (560 + 800 + 112 + 32)


def test_figures_are_medians_of_ratios_within_rounds():
    faster = ratio("faster", [1.0, 2.0, 4.0], [2.0, 6.0, 20.0], Goal(3.0))
    assert (faster.median, faster.low, faster.high, faster.met) == (3.0, 2.0, 5.0, True)
    goals = (Goal(3.1), Goal(3, at_most=True), Goal(2.9, at_most=True), None)
    assert [figure("any", "", [3.0], goal).met for goal in goals] == [False, True, False, None]
    assert [percentile(range(1, 11), percent) for percent in (0, 50, 90, 91, 99)] == [
        1,
        5,
        9,
        10,
        10,
    ]


def measured_case(settings):
    """Measure nothing."""
    timings = [Timing("ours", [1.0, 2.0], [2.5], 10.0, 100.0, 1e-6), Timing("bert-score", [2.0])]
    skipped = [Skipped("other", "missing")]
    return Case("z", "nothing", timings=timings, skipped=skipped, encode_rate=3e9)


def test_a_run_writes_and_shows_what_was_measured(tmp_path, capsys):
    rates = iter([8e9, 6e9, 12e9])
    run_cases(
        [measured_case, measured_case],
        Settings(output=tmp_path),
        "name",
        lambda: next(rates),
        share_goal=35,
    )
    report = read_report(tmp_path / "name.json")
    shares = [case.figures[-1] for case in report.cases]
    # of the better rate
    assert [(share.median, share.met) for share in shares] == [(37.5, True), (25.0, False)]
    assert {"processor", "cores usable", "features", "onnxruntime"} <= report.machine.keys()
    text = (tmp_path / "name.md").read_text(encoding="utf-8")
    assert text == as_markdown(report)
    assert case_as_markdown(report.cases[0]) in text
    assert case_as_markdown(report.cases[0]) in capsys.readouterr().out
    row = [
        cell.strip()
        for cell in next(line for line in text.split("\n") if line.startswith("| ours")).split("|")
    ]
    assert row[1:-1] == ["ours", "1.50 s", "1.00 s to 2.00 s", "2.50 s", "10", "100 MB", "1.0e-06"]


def test_figures_go_where_the_page_has_those_of_the_processor():
    document = DOCUMENT.read_text(encoding="utf-8")
    narrow, wide = (
        Report("today", {"features": features}, {}) for features in ("avx2", "avx2 avx512f")
    )
    narrow.made, wide.made = "on the narrow one", "on the wide one"
    text = with_reports(document, [wide, narrow])
    for name, made in (("AVX2", narrow.made), ("AVX-512", wide.made)):
        begin, end = marks(name)
        assert [document.count(mark) for mark in (begin, end)] == [1, 1]
        assert f"Measured {made}." in text.split(begin)[1].split(end)[0]
    assert text.count("Measured on the") == 2


def test_the_measurements_on_a_gpu_are_rehearsed_without_one(tmp_path):
    gpu.main(["--rehearse", "--output", str(tmp_path)])
    few, many, around = read_report(tmp_path / "gpu.json").cases
    assert [len(case.timings) for case in (around, few, many)] == [0, 5, 3]
    for case in (few, many):
        assert not case.skipped
        # all score alike
        assert all((timing.score_difference or 0) < 1e-3 for timing in case.timings)
    figures = {figure.name: figure.median for figure in around.figures}
    assert figures["F in fp32, from the CPU's"] <= 1
    assert all(value > 0 for name, value in figures.items() if "callers" in name)


def test_what_is_missing_for_the_measurements_on_a_gpu_is_said_first(tmp_path):
    with pytest.raises(SystemExit, match=r"^Missing here: .*CUDA"):
        gpu.main(["--output", str(tmp_path)])
    assert not [*tmp_path.iterdir()]


def test_every_pair_scores_in_plain_pytorch_as_in_bert_score(tiny_model):
    expected = load_peer(str(tiny_model), device="cpu", num_layers=2).score(CANDIDATES, REFERENCES)
    for unpadded in (False, True):
        scorer = load_torch(
            str(tiny_model), device="cpu", num_layers=2, dtype="float32", unpadded=unpadded
        )
        for found, values in zip(scorer.score(CANDIDATES, REFERENCES), expected, strict=True):
            assert found == pytest.approx(values.tolist(), abs=1e-5)


def test_the_host_alone_prepares_every_chunk_and_runs_no_model(tiny_bundle):
    done = run_python(PREPARE, tiny_bundle)
    assert done.stdout.split() == ["0"], done.stderr
