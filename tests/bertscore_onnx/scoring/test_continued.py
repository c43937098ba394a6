import numpy as np
import pytest

from tests.support.scores import CANDIDATES, largest_difference

REFERENCES = [
    f"{subject} {verb} {place}"
    for subject in ("the cat", "a dog", "it", "the red house", "a tree")
    for verb in ("sat", "ran", "is", "sits", "was")
    for place in ("on the mat", "in blue", "and ran", "not it")
]


@pytest.fixture
def tiny_chunks(scorer, monkeypatch):
    """Let a chunk hold 60 tokens, and return the sizes of the tables that are encoded."""
    encoder, sizes = scorer._pipeline.encoder, []
    encode = encoder.encode

    def watched(sequences, **options):
        sizes.append(sum(map(len, sequences)))
        return encode(sequences, **options)

    monkeypatch.setattr(scorer._pipeline, "_chunk_tokens", 60)
    monkeypatch.setattr(encoder, "encode", watched)
    return sizes


@pytest.mark.parametrize("counts", [[98, 1, 1], [1, 98, 1], [30, 40, 30], [1, 2, 97]])
def test_the_references_of_one_candidate_may_fill_many_chunks(scorer, tiny_chunks, monkeypatch, counts):
    ends = np.cumsum(counts)
    groups = [REFERENCES[end - count : end] for count, end in zip(counts, ends, strict=True)]
    found = scorer.score(CANDIDATES, groups)
    assert max(tiny_chunks) < 60 + 60
    assert len(tiny_chunks) > 5
    monkeypatch.undo()
    expected = scorer.score(CANDIDATES, groups)
    assert largest_difference(found, expected) <= 1e-6
    singly = [
        scorer.score([candidate] * len(group), group).F for candidate, group in zip(CANDIDATES, groups, strict=True)
    ]
    assert [scores[best] for scores, best in zip(singly, found.best_reference, strict=True)] == pytest.approx(
        [max(scores) for scores in singly], abs=1e-6
    )


def test_a_stream_yields_every_candidate_once(scorer, tiny_chunks):
    pairs = [(CANDIDATES[0], REFERENCES[:70]), (CANDIDATES[1], REFERENCES[70:]), (CANDIDATES[2], REFERENCES[0])]
    assert [len(score) for score in scorer.stream(pairs)] == [3, 3, 3]


def test_truncated_and_empty_references_are_counted_over_all_chunks(scorer, tiny_chunks):
    long = "cat " * 50
    with pytest.warns(UserWarning, match=" ") as caught:
        scorer.score(["a cat"], [[*REFERENCES[:50], long, "", *REFERENCES[50:], ""]])
    assert sorted(str(warning.message)[:25] for warning in caught) == [
        "1 text is longer than 32 ",
        "2 pairs score 0 because a",
    ]
