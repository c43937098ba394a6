"""`bertscore-onnx score`: what is printed when, and what is left when it ends early."""

import signal

import numpy as np
import pytest

from bertscore_onnx import BERTScorer

pytestmark = pytest.mark.slow  # it starts processes

TEXTS = ["the cat sat on the mat", "a red house", "a dog ran", "the tree is blue"] * 5
OTHERS = ["a dog sits on the mat", "the blue house is red", "it ran", "the tree"] * 5


def lines(texts):
    return "".join(f"{text}\n" for text in texts)


@pytest.fixture
def references(write):
    return write("references.txt", lines(OTHERS))


@pytest.fixture
def printed(scorer):
    """The library's scores of the same pairs, as lines under a header."""
    scores = scorer.score(TEXTS, OTHERS)
    rows = [
        "{:.6f}\t{:.6f}\t{:.6f}\n".format(*values).encode() for values in zip(*scores, strict=True)
    ]
    return [b"precision\trecall\tf1\n", *rows]


def test_scores_of_a_pipe_are_printed_before_its_end(start_scoring, references, printed):
    process = start_scoring("-r", references, "-s")
    process.stdin.write(lines(TEXTS[:12]).encode())
    # one chunk is always read ahead
    assert [process.stdout.readline() for _ in range(12)] == printed[:12]
    process.stdin.write(lines(TEXTS[12:]).encode())
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, b"".join(printed[12:]))
    assert stderr.startswith(b"bertscore-onnx|model:tiny-bert|")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (signal.SIGINT, 130, b"Interrupted; 11 pairs were scored.\n"),
        (signal.SIGTERM, -signal.SIGTERM, b""),
    ],
)
def test_a_signal_leaves_the_lines_of_what_was_scored_and_no_means(
    start_scoring, references, printed, number, status, message
):
    process = start_scoring("-r", references, "-s")
    process.stdin.write(lines(TEXTS[:12]).encode())
    first = [process.stdout.readline() for _ in range(12)]
    process.send_signal(number)
    assert process.communicate(timeout=60) == (b"", message)
    assert (process.returncode, first) == (status, printed[:12])


@pytest.mark.usefixtures("stdin_is_a_pipe")
def test_pairs_are_scored_before_a_damaged_line_of_a_pipe(run_score, references, printed):
    damaged = lines(TEXTS[:7]).encode() + b"Z\xfcrich\n"
    result = run_score("-c", "-", "-r", references, "-s", stdin=damaged)
    assert (result.exit_code, result.stdout_bytes) == (2, b"".join(printed[:8]))
    assert result.stderr.startswith(
        "Error: Standard input is not UTF-8: line 8 has the byte 0xFC at offset "
    )


@pytest.fixture
def files(write, references):
    return "-c", write("candidates.txt", lines(TEXTS)), "-r", references


@pytest.mark.usefixtures("stdin_is_a_pipe")
@pytest.mark.parametrize("piped", ["-c", "-r", None])
def test_idf_weights_and_signature_are_those_of_all_references(
    run_score, files, write, tiny_bundle, piped
):
    others = ("-r", write("others.txt", lines(TEXTS[::-1])))
    arguments = [
        "-" if at and files[at - 1] == piped else argument for at, argument in enumerate(files)
    ]
    stdin = files[files.index(piped) + 1].read_bytes() if piped else b""
    result = run_score(*arguments, *others, "--idf", "-s", stdin=stdin)
    with BERTScorer(tiny_bundle, device="cpu", idf=True) as scorer:
        scores, signature = scorer.score(
            TEXTS, list(zip(OTHERS, TEXTS[::-1], strict=True)), return_hash=True
        )
    _, *segments = result.stdout.splitlines()
    assert segments == [
        "{:.6f}\t{:.6f}\t{:.6f}".format(*values) for values in zip(*scores, strict=True)
    ]
    assert result.stderr.startswith(signature)
    assert "|idf:references|" in signature


def test_all_layers_are_a_table_of_means_and_an_array_in_json(
    run, run_json, files, all_layers_bundle, all_layers_scorer
):
    # (layers, 3)
    expected = np.stack(all_layers_scorer.score(TEXTS, OTHERS)).mean(axis=2, dtype=np.float64).T
    arguments = ["score", "-m", all_layers_bundle, *files, "--all-layers"]
    first, head, *rows = run(*arguments).stdout.splitlines()
    assert first.startswith("bertscore-onnx|model:tiny-bert|layer:all|")
    assert head.split() == ["layer", "P", "R", "F1"]
    assert [row.split() for row in rows] == [
        [str(layer), *(f"{mean:.6f}" for mean in means)] for layer, means in enumerate(expected)
    ]
    result = run_json(*arguments)
    assert list(result) == ["signature", "layers", "pairs", "truncated"]
    assert [layer["layer"] for layer in result["layers"]] == [0, 1, 2, 3]
    assert [layer["f1"] for layer in result["layers"]] == pytest.approx(expected[:, 2], rel=1e-15)


def test_a_bundle_of_all_layers_is_scored_on_request_only(refused, files, all_layers_bundle):
    stderr = refused("score", "-m", all_layers_bundle, *files)
    assert "with --num-layers, or score by each with --all-layers." in stderr


@pytest.mark.parametrize(
    ("options", "terminal", "verbose"),
    [
        ([], False, None),
        (["-q"], False, False),
        (["-s"], False, None),
        (["-s"], True, False),
    ],
)
def test_no_bar_comes_unasked_among_scores_on_a_terminal(
    run_score, score_on, files, monkeypatch, options, terminal, verbose
):
    asked = []
    original = BERTScorer.stream

    def stream(self, pairs, *, verbose, **options):
        asked.append(verbose)
        return original(self, pairs, **options)

    score_on(terminal)
    monkeypatch.setattr(BERTScorer, "stream", stream)
    assert run_score(*files, *options).exit_code == 0
    assert asked == [verbose]
