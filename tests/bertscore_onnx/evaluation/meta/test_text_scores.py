"""Scoring what systems wrote."""

import numpy as np
import pytest
import sacrebleu

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.metrics import score_systems

REFERENCES = (
    ("the cat sat on the mat",),
    ("it rained all day long", "it was raining all day"),
    ("good morning to you",),
)
OUTPUTS = (
    ("the cat sat on a mat", "it rained the whole day", "good morning"),
    ("a cat sits on the mat", "rain fell all day long", None),
    ("the cat sat on the mat", "it rained all day long", "hello to you"),
)
OF_OUTPUTS = tuple(
    tuple(references if output is not None else () for output, references in zip(row, REFERENCES, strict=True))
    for row in OUTPUTS
)


def outputs_of(system):
    """Return the outputs of a system and their references."""
    pairs = zip(OUTPUTS[system], REFERENCES, strict=True)
    candidates, references = zip(*[pair for pair in pairs if pair[0] is not None], strict=True)
    return list(candidates), [list(some) for some in references]


def test_bertscore_is_that_of_each_output_alone(scorer):
    scores = score_systems(["bertscore"], OUTPUTS, OF_OUTPUTS, scorer=scorer)["bertscore"]
    for system in range(3):
        expected = scorer.score(*outputs_of(system)).F
        found = scores.segment[system][~np.isnan(scores.segment[system])]
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert scores.system[system] == pytest.approx(expected.mean(), abs=1e-6)
    assert np.argwhere(np.isnan(scores.segment)).tolist() == [[1, 2]]
    assert scores.signature == str(scorer.signature)


def test_each_different_text_is_encoded_once(scorer, monkeypatch):
    encoded = []
    encoder = scorer._pipeline.encoder
    encode = type(encoder).encode

    def watched(self, sequences, *arguments, **options):
        encoded.extend(sequences)
        return encode(self, sequences, *arguments, **options)

    monkeypatch.setattr(type(encoder), "encode", watched)
    score_systems(["bertscore"], OUTPUTS, OF_OUTPUTS, scorer=scorer)
    texts = {text for row in OUTPUTS for text in row if text} | {one for some in REFERENCES for one in some}
    assert len(encoded) == len(texts)


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_metrics_of_sacrebleu_are_its_own(name):
    scores = score_systems([name], OUTPUTS, OF_OUTPUTS)[name]
    corpus = {"bleu": sacrebleu.BLEU(), "chrf": sacrebleu.CHRF()}[name]
    sentence = {"bleu": sacrebleu.BLEU(effective_order=True), "chrf": sacrebleu.CHRF()}[name]
    candidates, references = outputs_of(0)
    columns = [[some[0] for some in references], [some[1] if len(some) > 1 else None for some in references]]
    assert scores.system[0] == pytest.approx(corpus.corpus_score(candidates, columns).score)
    assert scores.segment[0][1] == pytest.approx(sentence.sentence_score(candidates[1], references[1]).score)
    assert np.isnan(scores.segment[1][2])


def test_negated_ter_is_the_better_the_higher():
    scores = score_systems(["ter"], OUTPUTS, OF_OUTPUTS)["ter"].negated
    candidates, references = outputs_of(0)
    assert scores.segment[0][0] == -sacrebleu.TER().sentence_score(candidates[0], references[0]).score
    assert scores.system[2] > scores.system[1]
    assert scores.signature.endswith("|negative:yes")


def test_options_reach_the_metric_they_are_for():
    scores = score_systems({"bleu": {"smooth_method": "none"}, "chrf": {}}, OUTPUTS, OF_OUTPUTS)
    assert "smooth:none" in scores["bleu"].signature
    assert "smooth" not in scores["chrf"].signature


def test_bertscore_needs_a_scorer():
    with pytest.raises(InputError, match="needs a scorer"):
        score_systems(["bertscore"], OUTPUTS, OF_OUTPUTS)


def test_each_system_needs_a_text_or_none_for_each_segment():
    with pytest.raises(InputError, match="as many texts as references"):
        score_systems(["bleu"], [["a", "b"], ["a"]], [["x", "y"]] * 2)
