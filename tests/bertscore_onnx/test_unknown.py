"""Scores have the share of tokens that are unknown to the model, and calls with many of them warn:
`unknown`.
"""

import json

import pandas as pd
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx_service import MicroBatcher

GREETING, OTHER = "สวัสดีครับ", "ሰላም ለዓለም"
ENGLISH = [
    ("the cat sat on the mat", ["a cat on a mat", "the dog ran"]),
    ("a red house 😀", ["the blue house on it"]),
]
PAIRS = [
    (GREETING, [GREETING]),
    ("the cat", ["a cat", OTHER]),
    *ENGLISH,
    (f"{OTHER} cat", ["a dog"]),
]
SHARES = [1.0, 1.0, 0.0, 0.25, 2 / 3]


def sides(pairs):
    return [candidate for candidate, _ in pairs], [references for _, references in pairs]


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_one_warning_has_the_counts_in_any_order_and_chunks(tiny_bundle, monkeypatch, size):
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", size)
    monkeypatch.setattr("bertscore_onnx.scoring.inputs.PAIRS_AT_ONCE", size)
    expected = (
        "86 % of the tokens are unknown to this model in 4 of 12 texts, and all unknown tokens"
    )
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        for order in (PAIRS, PAIRS[::-1]):
            with pytest.warns(UserWarning, match=expected) as caught:
                scorer.score(*sides(order))
            assert [warning.filename for warning in caught] == [__file__]
            with pytest.warns(UserWarning, match=expected):
                list(scorer.stream(order))


@pytest.mark.filterwarnings("error::UserWarning")
def test_english_with_an_emoji_has_no_warning(scorer):
    scorer.score(*sides(ENGLISH))
    # a text in a hundred is no other language
    scorer.score(*sides([*ENGLISH * 4, ("👍", ["the cat"])]))


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize(
    "call", [lambda scorer: scorer.match(GREETING, OTHER), lambda scorer: scorer.encode([OTHER])]
)
def test_other_calls_warn_too(scorer, call):
    with pytest.raises(UserWarning, match="100 % of the tokens"):
        call(scorer)


def test_matches_name_an_unknown_text(scorer):
    assert "67 % of the tokens of the reference" in str(scorer.match("the cat", f"{OTHER} cat"))


def test_every_score_has_the_share_of_its_worst_text(scorer):
    candidates, references = sides(PAIRS)
    for shares in (
        scorer.score(candidates, references).unknown,
        scorer.score(candidates, scorer.encode(references)).unknown,
    ):
        assert shares.tolist() == pytest.approx(SHARES)
    assert [score.unknown for score in scorer.stream(PAIRS[::-1])] == pytest.approx(SHARES[::-1])
    assert scorer.pairwise(["the cat", OTHER], ["a dog", f"{OTHER} cat"]).unknown.tolist() == [
        [0, pytest.approx(2 / 3)],
        [1, 1],
    ]


def test_a_batcher_answers_with_it_however_pairs_are_cut(scorer):
    with MicroBatcher(scorer, max_batch_tokens=16) as batcher:
        assert batcher.submit(*sides(PAIRS)).result(30).unknown.tolist() == pytest.approx(SHARES)


def test_frames_have_it_beside_truncated_texts(scorer):
    candidates, references = sides(PAIRS)
    frame = pd.DataFrame({"candidate": candidates, "reference": references})
    scored = scorer.score_frame(frame, names=("p", "r", "f", "cut"))
    assert list(scored)[-3:] == ["cut", "unknown", "best_reference"]
    assert scored["unknown"].tolist() == pytest.approx(SHARES)


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_files_have_it_beside_truncated_texts(run_score, write, tmp_path, suffix):
    lines = [
        json.dumps({"candidate": candidate, "references": references})
        for candidate, references in PAIRS
    ]
    output = tmp_path / f"out.{suffix}"
    table = write("in.jsonl", "\n".join(lines))
    result = run_score("-c", table, "--columns", "truncated=cut", "-o", output)
    assert "86 % of the tokens are unknown to this model in 4 of 12 texts" in result.stderr
    read = {
        "jsonl": lambda file: pd.read_json(file, lines=True),
        "csv": pd.read_csv,
        "parquet": pd.read_parquet,
    }[suffix]
    assert read(output)["unknown"].tolist() == pytest.approx(SHARES)
