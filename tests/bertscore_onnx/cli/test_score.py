"""`bertscore-onnx score`."""

import json
import re

import numpy as np
import pytest

from bertscore_onnx import BERTScorer

CANDIDATES = "the cat sat on the mat\na red house\n"
REFERENCES = "a dog sits on the mat\nthe blue house is red\n"
OTHERS = "the cat was on a mat\na red house\n"
SEGMENT = r"-?\d\.\d{6}\t-?\d\.\d{6}\t-?\d\.\d{6}"


@pytest.fixture
def files(write):
    return "-c", write("candidates.txt", CANDIDATES), "-r", write("references.txt", REFERENCES)


@pytest.fixture
def scored(tiny_bundle):
    """The library's scores of the same files."""
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        return scorer.score(CANDIDATES.splitlines(), REFERENCES.splitlines(), return_hash=True)


def test_prints_the_signature_and_the_means(run, files, tiny_bundle, scored):
    (precision, recall, f1), signature = scored
    result = run("score", "--model", tiny_bundle, *files)
    means = [float(np.mean(values, dtype=np.float64)) for values in (precision, recall, f1)]
    assert result.stdout == f"{signature} P: {means[0]:.6f} R: {means[1]:.6f} F1: {means[2]:.6f}\n"
    assert (result.exit_code, result.stderr) == (0, "")


def test_prints_the_pairs_under_a_header_and_the_means_elsewhere(run, files, tiny_bundle, scored):
    precision, recall, f1 = scored[0]
    result = run("score", "--model", tiny_bundle, *files, "-s")
    assert result.stdout.splitlines() == [
        "precision\trecall\tf1",
        f"{precision[0]:.6f}\t{recall[0]:.6f}\t{f1[0]:.6f}",
        f"{precision[1]:.6f}\t{recall[1]:.6f}\t{f1[1]:.6f}",
    ]
    assert result.stderr == run("score", "--model", tiny_bundle, *files).stdout


def test_json_is_one_object(run, files, tiny_bundle, scored):
    result = json.loads(run("score", "--model", tiny_bundle, *files, "--json").stdout)
    assert list(result) == ["signature", "precision", "recall", "f1", "pairs"]
    assert result["signature"] == scored[1]
    assert result["f1"] == np.mean(scored[0].F, dtype=np.float64)
    assert result["pairs"] == 2


def test_json_has_the_pairs_on_request(run, files, tiny_bundle, scored):
    result = json.loads(run("score", "--model", tiny_bundle, *files, "--json", "--seg-level").stdout)
    precision, recall, f1 = scored[0]
    assert result["segments"][1] == {
        "precision": float(precision[1]),
        "recall": float(recall[1]),
        "f1": float(f1[1]),
        "best_reference": 0,
    }
    assert len(result["segments"]) == 2


def test_several_reference_files_score_by_the_best(run, files, write, tiny_bundle):
    others = write("others.txt", OTHERS)
    result = json.loads(run("score", "-m", tiny_bundle, *files, "-r", others, "-s", "--json").stdout)
    assert result["segments"][1]["best_reference"] == 1
    assert result["segments"][1]["f1"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("order", [("-c", "-", "-r"), ("-r", "-", "-c")])
def test_a_hyphen_reads_standard_input(run, write, tiny_bundle, order):
    path = write("same.txt", CANDIDATES)
    result = run("score", "-m", tiny_bundle, *order, path, stdin=CANDIDATES)
    assert result.stdout.endswith(" P: 1.000000 R: 1.000000 F1: 1.000000\n")


def test_underscored_names_of_bert_score_work(run, files, write, tiny_bundle):
    baseline = write("baseline.csv", "LAYER,P,R,F\n2,0.5,0.5,0.5\n")
    underscored = ("--num_layers", 2, "--batch_size", 1, "--rescale_with_baseline", "--baseline_path", baseline)
    hyphenated = [str(option).replace("_", "-") if option != baseline else option for option in underscored]
    result = run("score", "-m", tiny_bundle, *files, "--seg_level", *underscored)
    assert re.fullmatch(rf"precision\trecall\tf1\n({SEGMENT}\n){{2}}", result.stdout)
    assert re.fullmatch(r"bertscore-onnx\|.*\|rescale:file-.* P: .*\n", result.stderr)
    assert result.stdout == run("score", "-m", tiny_bundle, *files, "--seg-level", *hyphenated).stdout


def test_the_fast_tokenizer_is_asked_for_by_its_own_bundle(run, files, installed_bundle):
    result = run("score", "-m", "tiny-bert", *files, "-l", 2, "--use_fast_tokenizer")
    assert result.exit_code == 1
    assert "bertscore-onnx export --model tiny-bert --num-layers 2 --tokenizer-mode fast" in result.stderr


def test_a_model_of_the_home_folder_goes_by_its_name(run, files, installed_bundle):
    assert run("score", "-m", "tiny-bert", *files).stdout.startswith("bertscore-onnx|model:tiny-bert|layer:2|")


def test_idf_comes_from_the_references(run, files, tiny_bundle):
    assert "|idf:references|" in run("score", "-m", tiny_bundle, *files, "--idf").stdout


def test_language_alone_chooses_its_default_model(run, files, home):
    result = run("score", "--lang", "en", *files)
    assert result.stderr.startswith("Error: roberta-large at layer 17 is not exported yet")


def test_a_single_reference_has_no_idf(run, write, tiny_bundle):
    texts = write("texts.txt", "the cat\n")
    result = run("score", "-m", tiny_bundle, "-c", texts, "-r", texts, "--idf")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: There is one reference, so every idf weight is 0;")
    assert "Leave --idf out, or in Python give" in result.stderr


def test_rescaling_without_baselines_says_that_there_are_none(run, files, tiny_bundle):
    result = run("score", "-m", tiny_bundle, "--rescale-with-baseline", *files)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "Error: Rescaling needs the language, `--lang`, or a file, `--baseline-path`. tiny-bert at layer 2 has no "
        "baselines.\n"
    )


@pytest.mark.filterwarnings("default::UserWarning")
def test_texts_are_cut_at_the_length_that_is_asked_for(run, files, tiny_bundle):
    result = run("score", "-m", tiny_bundle, *files, "--max-length", 4)
    assert result.exit_code == 0
    assert "|max_length:4|" in result.stdout
    assert "longer than 4 tokens" in result.stderr


def test_a_length_beyond_the_models_is_refused_by_its_option(run, files, tiny_bundle):
    result = run("score", "-m", tiny_bundle, *files, "--max-length", 99)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: --max-length is 99; tiny-bert takes 3 ")


@pytest.mark.parametrize("path", ["./absent", "path/to/absent", "/no/such/folder"])
def test_a_path_without_a_folder_is_told(run, files, home, path):
    for command in (["score", "-m", path, *files], ["inspect", path]):
        result = run(*command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"Error: There is no folder '{path}'.")


def test_language_beside_a_model_chooses_the_baseline(run, files, tiny_bundle):
    result = run("score", "-m", tiny_bundle, "--lang", "xx", "--rescale-with-baseline", *files)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: tiny-bert at layer 2 has no baseline for 'xx', nor for any other language.")


def test_errors_are_one_line(run, files, tiny_bundle):
    result = run("score", "-m", tiny_bundle, *files, "-l", 1)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert re.fullmatch(r"Error: The bundle .* is cut at layer 2, and layer 1 was asked for\..*\n", result.stderr)
    assert "Leave --num-layers out" in result.stderr


def test_file_errors_exit_1(run, tiny_bundle, write):
    result = run("score", "-m", tiny_bundle, "-c", write("empty.txt", b""), "-r", write("references.txt", REFERENCES))
    assert result.exit_code == 1
    assert re.fullmatch(r"Error: .*empty\.txt is empty; expected texts, one per line\.\n", result.stderr)


def test_unknown_devices_exit_1(run, files, tiny_bundle):
    result = run("score", "-m", tiny_bundle, *files, "--device", "tpu")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: --device is 'tpu'; expected")


@pytest.mark.filterwarnings("default::UserWarning")
def test_warnings_are_one_line_without_a_place(run, write, tiny_bundle):
    candidates, references = write("candidates.txt", "the cat\n\n"), write("references.txt", "a cat\na dog\n")
    result = run("score", "-m", tiny_bundle, "-c", candidates, "-r", references)
    assert result.exit_code == 0
    assert result.stderr == "Warning: 1 pair scores 0 because a side is empty.\n"


@pytest.mark.filterwarnings("default::UserWarning")
def test_pairs_with_an_empty_side_are_zeros_in_json(run, write, tiny_bundle):
    path = write("blank.txt", "\n")
    result = json.loads(run("score", "-m", tiny_bundle, "-c", path, "-r", path, "-s", "--json").stdout)
    assert result["segments"] == [{"precision": 0.0, "recall": 0.0, "f1": 0.0, "best_reference": 0}]


def test_the_progress_bar_goes_to_standard_error(run, files, tiny_bundle, scored):
    result = run("score", "-m", tiny_bundle, *files, "-v")
    assert "scoring: 100%" in result.stderr
    assert "2/2 [" in result.stderr
    assert result.stdout.startswith(scored[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "x", "-c", "-", "-r", "-"], "Invalid value for --cand, --ref: standard input, -, can be only one"),
        (["-m", "x", "-c", "a", "-r", "-", "-r", "-"], "Invalid value for --cand, --ref: standard input, -,"),
        (
            ["-m", "x", "-c", "a", "-r", "b", "--all-layers", "-s"],
            "--seg-level, --output, --output-format: pairs have the scores",
        ),
        (["-m", "x", "-c", "a"], "Invalid value for --ref: give the references, -r FILE. a is read as text"),
        (["-m", "x", "-r", "a"], "Missing option '-c' / '--cand'"),
        (["-m", "x", "-c", "a", "-r", "b", "-b", "0"], "Invalid value for '-b' / '--batch-size'"),
        (["-m", "x", "-c", "a", "-r", "b", "-l", "-1"], "Invalid value for '-l' / '--num-layers'"),
        (["-m", "x", "-c", "a", "-r", "b", "--nthreads", "0"], "Invalid value for '--nthreads'"),
        (["-m", "x", "-c", "a", "-r", "b", "--no-such"], "No such option: --no-such"),
        (["-m", "x", "-c", "a", "-r", "b", "--long-text", "skip"], "'truncate'"),
    ],
)
def test_wrong_usage_exits_2(run, arguments, message):
    result = run("score", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_long_texts_are_encoded_in_windows_on_request(run, write, tiny_bundle):
    path = write("long.txt", "cat dog " * 40 + "\n")
    result = run("score", "-m", tiny_bundle, "-c", path, "-r", path, "--long-text", "window")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "|long_text:window|" in result.stdout
