"""Scores of systems: BERTScore against the scorer, BLEU, chrF and TER against sacreBLEU run
live.
"""

import sys

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from bertscore_onnx.errors import InputError, MissingExtraError
from bertscore_onnx_evaluation import compare
from bertscore_onnx_evaluation.metric_scores import corpus_metric, score_systems
from bertscore_onnx_evaluation.systems.paired_tests import paired_permutation
from tests.support.metaeval import FOLDER, needs_metaeval

TEXT = "the a cat dog house tree runs sits sees under over red green big small and or not with ."
WORDS = TEXT.split()
METRICS = {"bleu": BLEU, "chrf": CHRF, "ter": TER}


def changed(texts, rng, rate):
    return [
        " ".join(rng.choice(WORDS) if rng.random() < rate else word for word in text.split())
        for text in texts
    ]


def made_texts(num_references, num_segments=80):
    """Return three systems of nearly the same quality, and references.

    Two words in three references are thirds of a word, whose sums are rounded, and a tie depends on
    that.
    """
    rng = np.random.default_rng(11)
    meant = [" ".join(rng.choice(WORDS, rng.integers(3, 15))) for _ in range(80)]
    systems = [changed(meant, rng, rate)[:num_segments] for rate in (0.30, 0.27, 0.31)]
    streams = [changed(meant, rng, 0.1)[:num_segments] for _ in range(num_references)]
    if num_references == 3:
        streams[0] = [
            text.split(" ", 2 * (number % 2))[-1] for number, text in enumerate(streams[0])
        ]
    return systems, streams


def oracle(name, systems, streams, seed, monkeypatch, **options):
    monkeypatch.setenv("SACREBLEU_SEED", str(seed))
    named = [(str(number), texts) for number, texts in enumerate(systems)]
    _, results = PairedTest(named, {name: METRICS[name](references=streams)}, None, **options)()
    return next(values for column, values in results.items() if column != "System")


def assert_equal(result, expected):
    np.testing.assert_allclose(
        result.score, np.array([one.score for one in expected], dtype=np.float64), rtol=5e-7
    )
    np.testing.assert_array_equal(result.p, [one.p_value for one in expected[1:]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_references", "num_segments", "seed"),
    [(1, 80, 12345), (2, 80, 7), (3, 80, 2024)],
)
@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_without_ties_p_is_that_of_sacrebleus_swaps(
    name, num_references, num_segments, seed, monkeypatch
):
    systems, streams = made_texts(num_references, num_segments)
    corpus = corpus_metric(name, systems, [*zip(*streams, strict=True)]).corpus
    result = paired_permutation(corpus, seed=seed, num_swaps=1000)
    expected = oracle(
        name, systems, streams, seed, monkeypatch, test_type="ar", n_samples=1000, n_ar_confidence=1
    )
    assert_equal(result, expected)
    assert (result.p > 0.002).all()


@pytest.mark.slow
@needs_metaeval
@pytest.mark.parametrize("name", ["chrf", pytest.param("bleu", marks=pytest.mark.full)])
def test_real_systems_are_compared_as_by_sacrebleu(name, monkeypatch):
    outputs = sorted((FOLDER / "wmt23" / "system-outputs" / "he-en").glob("*.txt"))[:4]
    files = [FOLDER / "wmt23" / "references" / "he-en.refB.txt", *outputs]
    reference, *systems = [path.read_text(encoding="utf-8").split("\n")[:200] for path in files]
    expected = oracle(
        name, systems, [reference], 12345, monkeypatch, test_type="ar", n_ar_confidence=1
    )
    assert_equal(paired_permutation(corpus_metric(name, systems, reference).corpus), expected)


def test_segments_and_corpora_are_scored_as_by_sacrebleu():
    systems, (reference,) = made_texts(1)
    alone = {
        "bleu": sacrebleu.sentence_bleu,
        "chrf": sacrebleu.sentence_chrf,
        "ter": sacrebleu.sentence_ter,
    }
    for name, function in alone.items():
        expected = [
            [function(text, [one]).score for text, one in zip(texts, reference, strict=True)]
            for texts in systems
        ]
        np.testing.assert_allclose(
            corpus_metric(name, systems, reference).segment, expected, rtol=1e-12
        )
    metric = corpus_metric("bleu", systems, reference, smooth_method="add-k")
    expected = [
        BLEU(smooth_method="add-k").corpus_score(texts, [reference]).score for texts in systems
    ]
    for _ in range(2):  # smoothing leaves the statistics as they are
        np.testing.assert_allclose(metric.corpus.observed(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("candidates", "references", "message"),
    [
        ([], [], "texts of 0 systems"),
        ([["a", "b"], ["a"]], [["a", "b"]] * 2, "as many texts as references"),
        ([["a", 1]], [["a", "b"]], "System 0 has 1 for segment 1"),
        ([["a", "b"]], [["a", [None]]], "Segment 1"),
    ],
)
def test_bad_input_is_refused(candidates, references, message):
    with pytest.raises(InputError, match=message):
        score_systems(["bleu"], candidates, references)


def test_the_extra_is_named_where_sacrebleu_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtraError, match=r"Install the extra evaluation: `pip install "):
        corpus_metric("bleu", [["a"]], ["a"])


@pytest.mark.parametrize(
    "error", [RuntimeError("\nJapanese needs\n\n  pip install x\n"), OSError("no network")]
)
def test_a_tokenizer_that_cannot_be_loaded_is_refused(monkeypatch, error):
    def load(_name):
        raise error

    monkeypatch.setattr("sacrebleu.metrics.bleu._get_tokenizer", load)
    with pytest.raises(
        InputError, match=f"cannot load .*: {' '.join(str(error).split())} Make that available"
    ):
        corpus_metric("bleu", [["a"]], ["a"], tokenize="ja-mecab")


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
    tuple(
        references if output is not None else ()
        for output, references in zip(row, REFERENCES, strict=True)
    )
    for row in OUTPUTS
)


def outputs_of(system):
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
    assert scores.signature == str(scorer.signature.with_references(1, 2))


def test_each_different_text_is_encoded_once(scorer, monkeypatch):
    encoded = []
    encoder = scorer._pipeline.encoder
    run = type(encoder).run

    def watched(self, texts, *arguments, **options):
        encoded.extend(texts.sequences)
        return run(self, texts, *arguments, **options)

    monkeypatch.setattr(type(encoder), "run", watched)
    score_systems(["bertscore"], OUTPUTS, OF_OUTPUTS, scorer=scorer)
    texts = {text for row in OUTPUTS for text in row if text} | {
        one for some in REFERENCES for one in some
    }
    assert len(encoded) == len(texts)


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_metrics_of_sacrebleu_are_its_own(name):
    scores = score_systems([name], OUTPUTS, OF_OUTPUTS)[name]
    corpus = {"bleu": sacrebleu.BLEU(), "chrf": sacrebleu.CHRF()}[name]
    sentence = {"bleu": sacrebleu.BLEU(effective_order=True), "chrf": sacrebleu.CHRF()}[name]
    candidates, references = outputs_of(0)
    columns = [
        [some[0] for some in references],
        [some[1] if len(some) > 1 else None for some in references],
    ]
    assert scores.system[0] == pytest.approx(corpus.corpus_score(candidates, columns).score)
    assert scores.segment[0][1] == pytest.approx(
        sentence.sentence_score(candidates[1], references[1]).score
    )
    assert np.isnan(scores.segment[1][2])
    assert scores.signature.startswith("nrefs:var|")


def test_negated_ter_is_the_better_the_higher():
    scores = score_systems(["ter"], OUTPUTS, OF_OUTPUTS)["ter"].negated
    candidates, references = outputs_of(0)
    assert (
        scores.segment[0][0] == -sacrebleu.TER().sentence_score(candidates[0], references[0]).score
    )
    assert scores.system[2] > scores.system[1]
    assert scores.signature.endswith("|negative:yes")


def test_a_metric_is_named_as_on_the_command_line():
    as_text, as_mapping = (
        score_systems(metrics, OUTPUTS, OF_OUTPUTS)["chrf"]
        for metrics in ("chrf,char_order=2", {"chrf": {"char_order": 2}})
    )
    assert as_text.signature == as_mapping.signature
    np.testing.assert_array_equal(as_text.segment, as_mapping.segment)


def test_the_warning_of_empty_texts_names_their_systems(scorer):
    outputs = {
        "A": ["the cat", " ", ""],
        "B": ["the cat", "a dog", "a dog"],
        "C": ["", "a dog", "a dog"],
    }
    with pytest.warns(
        UserWarning, match=r"^3 pairs score 0 because a side is empty: 2 of A, 1 of C\.$"
    ):
        compare(outputs, ["the cat", "a dog", "the dog"], scorer=scorer)
