"""`bertscore-onnx score`: what it prints, and what its options do."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

CANDIDATES = "the cat sat on the mat\na red house\n"
REFERENCES = "a dog sits on the mat\nthe blue house is red\n"


@pytest.fixture
def files(write):
    return "-c", write("candidates.txt", CANDIDATES), "-r", write("references.txt", REFERENCES)


@pytest.fixture
def arguments(files, tiny_bundle):
    return ["score", "-m", tiny_bundle, *files]


@pytest.fixture
def scored(scorer):
    return scorer.score(CANDIDATES.splitlines(), REFERENCES.splitlines(), return_hash=True)


def test_prints_the_signature_and_the_means(run, arguments, scored):
    (precision, recall, f1), signature = scored
    result = run(*arguments)
    means = [float(np.mean(values, dtype=np.float64)) for values in (precision, recall, f1)]
    assert result.stdout == f"{signature} P: {means[0]:.6f} R: {means[1]:.6f} F1: {means[2]:.6f}\n"
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_mean_below_the_bound_fails_after_it_is_printed(
    run, refused, arguments, scored, tmp_path
):
    f1 = float(np.mean(scored[0].F, dtype=np.float64))
    failed = run(*arguments, "--min-f1", round(f1, 6) + 1e-6, "-o", tmp_path / "out.tsv")
    assert (
        failed.exit_code,
        f"F1: {f1:.6f}" in failed.stdout,
        (tmp_path / "out.tsv").exists(),
    ) == (1, True, True)
    assert failed.stderr.startswith(
        f"Failed: the mean F1 is {f1:.6f}, below {round(f1, 6) + 1e-6} (--min-f1); "
    )
    assert run(*arguments, "--min-f1", round(f1, 6)).exit_code == 0
    assert run(*arguments, "--min-f1", round(f1, 6), "-q").stderr == ""
    for bound in ("nan", "90", "-1"):
        assert "expected a number from 0 to 1" in refused(*arguments, "--min-f1", bound)


@pytest.mark.parametrize("number", [2, 4, 9, 10, 30])
def test_the_gate_says_what_it_rests_on(run_score, write, scorer, number):
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "saw", "red", "dogs"]
    candidates = [" ".join(words[row % 7 : row % 7 + 1 + row % 3]) for row in range(number)]
    references = [" ".join(words[row % 5 :]) for row in range(number)]
    files = (
        "-c",
        write("c.txt", "\n".join(candidates)),
        "-r",
        write("r.txt", "\n".join(references)),
    )
    f1 = scorer.score(candidates, references).F.astype(np.float64)
    mean = f1.mean()
    low, high = np.minimum(stats.t.interval(0.95, number - 1, mean, stats.sem(f1)), 1)
    for bound in (low + 0.01, high + 0.01):
        if not 0 <= bound <= 1:
            continue
        result = run_score(*files, "--min-f1", bound, "--format", "json")
        assert (result.exit_code, result.stderr.split(":")[0]) == (
            (0, "Passed") if mean >= bound else (1, "Failed")
        )
        ends = re.search(r"95 % interval (-?[\d.]+) to (-?[\d.]+\d)", result.stderr).groups()
        assert [float(end) for end in ends] == pytest.approx([low, high], abs=5e-4)
        assert f"(Student's t, {number} pairs, if independent); failures of" in result.stderr
        means = json.loads(result.stdout)
        assert [means["f1_low"], means["f1_high"]] == [float(end) for end in ends]
        assert stats.binom.pmf(0, number, means["unseen_failures"]) == pytest.approx(0.025)


def test_the_gate_of_a_single_pair_has_no_interval(run_json, write, tiny_bundle):
    files = ("-c", write("c.txt", "a cat"), "-r", write("r.txt", "a cat"))
    found = run_json("score", "-m", tiny_bundle, *files, "--min-f1", 0.5)
    assert (found["f1_low"], found["f1_high"]) == (None, None)
    assert found["unseen_failures"] == pytest.approx(0.975)


@pytest.mark.filterwarnings("ignore:.* because a side is empty:UserWarning")
def test_blank_files_are_an_error(refused, tiny_bundle, tmp_path):
    for name, text in {
        "blank": " \n\n",
        "full": "a\nb\n",
        "first": "a\n\n",
        "last": "\nb\n",
    }.items():
        (tmp_path / name).write_text(text)
    for sides in (("blank", "full"), ("full", "blank"), ("first", "last")):
        cand, ref = (tmp_path / side for side in sides)
        message = refused("score", "-m", tiny_bundle, "-c", cand, "-r", ref)
        assert "Nothing was scored: every pair has a blank side." in message


@pytest.mark.slow
def test_a_narrow_terminal_has_the_means_in_a_line_of_their_own(run_on_terminal, arguments, scored):
    _, _, means = run_on_terminal(*arguments, COLUMNS="80").rpartition(scored[1])
    assert means.startswith("\nP: ")
    assert run_on_terminal(*arguments, COLUMNS="500").count(f"{scored[1]} P: ") == 1


@pytest.mark.slow
def test_a_terminal_breaks_messages_between_words(run_on_terminal, files, tiny_bundle):
    shown = run_on_terminal("score", "-m", tiny_bundle, *files, "--max-length", "3", COLUMNS="60")
    lines = [line for line in shown.splitlines() if "|" not in line and "://" not in line]
    assert "Warning: " in shown
    assert max(map(len, lines)) <= 60


def test_prints_the_pairs_under_a_header_and_the_means_elsewhere(run, arguments, scored):
    result = run(*arguments, "-s")
    assert result.stdout.splitlines() == [
        "precision\trecall\tf1",
        *("{:.6f}\t{:.6f}\t{:.6f}".format(*values) for values in zip(*scored[0], strict=True)),
    ]
    assert result.stderr == run(*arguments).stdout


def test_json_is_one_object_and_has_the_pairs_on_request(run_json, arguments, scored):
    precision, recall, f1 = scored[0]
    result = run_json(*arguments)
    assert list(result) == ["signature", "precision", "recall", "f1", "pairs", "truncated"]
    assert (result["signature"], result["f1"], result["pairs"]) == (
        scored[1],
        np.mean(f1, dtype=np.float64),
        2,
    )
    first, second = run_json(*arguments, "--seg-level")["segments"]
    assert first.keys() == second.keys()
    assert second == {
        "precision": float(precision[1]),
        "recall": float(recall[1]),
        "f1": float(f1[1]),
    }


def test_underscored_names_of_bert_score_work(run, arguments, write):
    baseline = write("baseline.csv", "LAYER,P,R,F\n2,0.5,0.5,0.5\n")
    underscored = (
        "--num_layers",
        2,
        "--batch_size",
        1,
        "--rescale_with_baseline",
        "--baseline_path",
        baseline,
    )
    hyphenated = [
        str(option).replace("_", "-") if option != baseline else option for option in underscored
    ]
    result = run(*arguments, "--seg_level", *underscored)
    assert re.fullmatch(r"bertscore-onnx\|.*\|rescale:file-.* P: .*\n", result.stderr)
    assert (
        result.stdout
        == run(*arguments, "--seg-level", *hyphenated).stdout
        != run(*arguments, "-s").stdout
    )


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        (["--max-length", 4], "max_length:4", "longer than 4 tokens"),
        (["--long-text", "window"], "long_text:window", ""),
    ],
)
def test_long_texts_are_cut_with_a_warning_or_encoded_in_windows(
    run_score, write, options, field, message
):
    path = write("long.txt", "cat dog " * 40 + "\n")
    result = run_score("-c", path, "-r", path, *options)
    assert result.exit_code == 0
    assert f"|{field}|" in result.stdout
    assert (message in result.stderr, bool(result.stderr)) == (True, bool(message))


@pytest.mark.filterwarnings("default::UserWarning")
def test_quiet_leaves_errors_alone(run, refused, write, tiny_bundle):
    texts = write("texts.txt", "the cat\n\n")
    arguments = ["score", "-m", tiny_bundle, "-c", texts, "-r", texts, "-s"]
    result = run(*arguments, "--quiet")
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", run(*arguments).stdout)
    assert refused(*arguments, "--quiet", "--device", "tpu").startswith("Error: device is 'tpu'")


def test_the_progress_bar_of_a_terminal_goes_to_standard_error(run, arguments, scored, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.scoring.progress.PATIENCE", 0)
    terminal = SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("bertscore_onnx.scoring.progress.sys", terminal)
    assert "scoring" not in run(*arguments, "--quiet").stderr
    result = run(*arguments)
    assert "scoring: 100%" in result.stderr
    assert "2/2 [" in result.stderr
    assert result.stdout.startswith(scored[1])
