import copy
import inspect
import pickle
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter

import numpy as np
import onnxruntime
import pytest
import tokenizers

from bertscore_onnx import BERTScorer, Matching
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.errors import ClosedError, InputTypeError
from tests.support.bundles import exported
from tests.support.processes import forks, in_forked_child, run_python
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL, largest_difference


@pytest.mark.parametrize("number", [3, 0])
def test_scores_unpack_as_three_single_precision_arrays(scorer, number):
    precision, recall, f1 = scorer.score(CANDIDATES[:number], REFERENCES[:number])
    assert [array.dtype for array in (precision, recall, f1)] == [np.float32] * 3
    assert [array.shape for array in (precision, recall, f1)] == [(number,)] * 3


@pytest.mark.parametrize("send", [pickle.dumps, copy.copy])
def test_a_scorer_cannot_be_sent_to_another_process(scorer, send):
    with pytest.raises(InputTypeError, match="process"):
        send(scorer)


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_scores_do_not_depend_on_the_batch_or_the_order(scorer, batch_size):
    expected = scorer.score(CANDIDATES, REFERENCES)
    assert (
        largest_difference(scorer.score(CANDIDATES, REFERENCES, batch_size=batch_size), expected)
        < 1e-5
    )
    backwards = scorer.score(CANDIDATES[::-1], REFERENCES[::-1], batch_size=batch_size)
    assert largest_difference([array[::-1] for array in backwards], expected) < 1e-5


@pytest.mark.parametrize("empty", ["", "   ", "\n\t", "\u3000", "\u200b", "\0", "[SEP]"])
def test_a_side_without_words_scores_zero_with_one_warning(scorer, empty):
    with pytest.warns(UserWarning, match="2 pairs score 0 because a side is empty"):
        scores = scorer.score([empty, "a cat", "a cat"], ["a cat", empty, "a cat"])
    assert [array[:2].tolist() for array in scores] == [[0, 0]] * 3
    assert scores.F[2] == pytest.approx(1, abs=1e-6)


def test_a_side_without_weights_scores_zero_with_a_warning(tiny_bundle):
    message = "^1 pair scores 0 because every token of a side weighs 0.$"
    with (
        BERTScorer(tiny_bundle, idf=defaultdict(float)) as scorer,
        pytest.warns(UserWarning, match=message),
    ):
        assert scorer.score(["a cat"], ["the cat"]).F.tolist() == [0]


@pytest.mark.parametrize(
    "text",
    [
        "\0",
        "a\0b",
        chr(0xD800),
        "a \udfff cat",
        "\ufffd",
        "x" * 1_000_000,
        "cat " * 250_000,
        "🐈" * 100_000,
        "\u0301",
    ],
)
@pytest.mark.filterwarnings(
    "ignore:.* 0 because :UserWarning", "ignore:.* longer than 32 tokens :UserWarning"
)
def test_strange_text_never_crashes_and_never_gives_nan(scorer, text):
    assert np.isfinite(scorer.score([text, "a cat"], ["the cat", text])).all()


CUT = ["cat " * 50, "a dog", "dog " * 50], ["tree " * 50, "dog " * 50, "the mat"]


@pytest.mark.parametrize(
    ("score", "number"),
    [
        (lambda scorer: scorer.score(*CUT), 4),
        (lambda scorer: scorer.pairwise(*CUT), 4),
        (lambda scorer: scorer.encode([*CUT[0], CUT[0][0]]), 3),
    ],
    ids=["score", "pairwise", "encode"],
)
def test_texts_that_are_cut_are_counted_in_one_warning(scorer, score, number):
    with pytest.warns(
        UserWarning, match=f"{number} texts are longer than 32 tokens and truncated"
    ) as caught:
        score(scorer)
    assert [warning.filename for warning in caught] == [__file__]


def test_idf_comes_from_the_call_unless_computed_before(tiny_bundle):
    with (
        BERTScorer(tiny_bundle, idf=True) as scorer,
        BERTScorer(tiny_bundle, idf=True, idf_sents=REFERENCES) as ready,
    ):
        expected = ready.score(CANDIDATES, REFERENCES)
        assert largest_difference(scorer.score(CANDIDATES, REFERENCES), expected) == 0
        scorer.compute_idf(["the cat sat on the mat", "a red dog"])
        assert largest_difference(scorer.score(CANDIDATES, REFERENCES), expected) > 1e-3


def test_idf_sentences_without_idf_are_warned_of(tiny_bundle):
    with pytest.warns(UserWarning, match="idf=True"):
        BERTScorer(tiny_bundle, idf_sents=REFERENCES).close()


def test_the_signature_states_what_can_change_a_digit(tiny_bundle, baseline_path, scorer):
    digest = scorer.manifest.digest[:12]
    assert (
        str(scorer.signature)
        == scorer.hash
        == (
            f"bertscore-onnx|model:tiny-bert|layer:2|idf:no|rescale:no|tokenizer:slow|long_text:truncate|precision:fp32|"
            f"bundle:{digest}|version:0.1.0|"
            f"libraries:onnxruntime-{onnxruntime.__version__}+tokenizers-{tokenizers.__version__}+"
            f"numpy-{np.__version__}"
        )
    )
    with BERTScorer(
        tiny_bundle, idf=True, rescale_with_baseline=True, baseline_path=baseline_path
    ) as other:
        assert "|idf:references|rescale:file-" in other.hash


CALLS = [
    ({}, {}),
    ({}, {"refs": [["a dog", "a cat"], ["a dog", "a cat"]]}),
    ({}, {"refs": [["a dog"], ["a dog", "a cat", "a bird"]]}),
    ({}, {"contexts": ["before it", "before this"]}),
    ({"idf": True}, {}),
    ({"idf": True, "idf_sents": ["a cat", "the dog"]}, {}),
    ({"idf": True, "idf_sents": ["a cat", "the bird"]}, {}),
    ({"long_text": "window", "max_length": 8}, {}),
    ({"max_length": 8}, {}),
    *(
        ({"matching": matching}, {})
        for matching in (
            "exclude=special",
            Matching(words=["a", "b"], exclude=["special"]),
            Matching(words=["a\0b"], exclude=["special"]),
        )
    ),
]


def test_calls_that_may_give_other_digits_have_other_signatures(
    tiny_model, tiny_bundle, fast_bundle, all_layers_bundle, baseline_path, tmp_path
):
    quantised = exported("tiny-int8", tiny_model, num_layers=2, precision="int8")
    baseline = tmp_path / "other.csv"
    baseline.write_text("LAYER,P,R,F\n2,0.1,0.2,0.31\n")
    calls = [({"model_type": tiny_bundle, **settings}, texts) for settings, texts in CALLS]
    calls += [({"model_type": bundle}, {}) for bundle in (quantised, fast_bundle)]
    calls += [
        ({"model_type": all_layers_bundle, "num_layers": 1, "all_layers": is_all}, {})
        for is_all in (False, True)
    ]
    calls += [
        ({"model_type": tiny_bundle, "rescale_with_baseline": True, "baseline_path": path}, {})
        for path in (baseline_path, baseline)
    ]
    signatures = []
    for settings, texts in calls:
        with BERTScorer(**settings) as scorer:
            scores = scorer.score(["the cat", "a dog"], **{"refs": ["a cat", "the dog"], **texts})
            signatures.append(str(scores.signature))
    assert len({*signatures}) == len(calls)
    assert ["|references:2|" in signatures[1], "|references:1-3|" in signatures[2]] == [True, True]
    assert "references" not in signatures[0]


def positional_names(function):
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]


@pytest.mark.slow  # it imports PyTorch
@pytest.mark.parametrize("name", ["BERTScorer", "BERTScorer.score", "score"])
def test_the_positional_arguments_are_those_of_bert_score(name):
    import bert_score

    import bertscore_onnx

    path = attrgetter(name)
    assert positional_names(path(bertscore_onnx)) == positional_names(path(bert_score))


def test_arguments_by_position_arrive(tiny_bundle):
    with BERTScorer(
        str(tiny_bundle), 2, 64, 1, False, True, REFERENCES, "cpu", "en", False, None, False
    ) as scorer:
        assert scorer.signature.idf not in ("no", "references")
        assert scorer.signature.tokenizer == "slow"


def test_many_threads_share_a_scorer(scorer):
    calls = [
        ([candidate, other], [reference, CANDIDATES[0]])
        for candidate in CANDIDATES
        for other in REFERENCES
        for reference in REFERENCES
    ]
    expected = [scorer.score(*call) for call in calls]
    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(lambda call: scorer.score(*call), calls * 8))
    assert max(map(largest_difference, found, expected * 8)) < 1e-6


@pytest.mark.parametrize("num_threads", [1, 8])
def test_closing_a_scorer_ends_the_work_of_another_thread(tiny_bundle, monkeypatch, num_threads):
    started, closed = threading.Event(), threading.Event()

    def run(runner, *arguments, **options):
        started.set()
        assert closed.wait(60)
        return original(runner, *arguments, **options)

    original = Encoder.run_batch
    monkeypatch.setattr(Encoder, "run_batch", run)
    scorer = BERTScorer(tiny_bundle, device="cpu", nthreads=num_threads)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(scorer.score, CANDIDATES, REFERENCES)
        assert started.wait(60)
        scorer.close()
        closed.set()
        assert isinstance(future.exception(60), ClosedError)


def test_a_run_that_is_in_progress_outlives_the_closing(tiny_bundle):
    scorer = BERTScorer(tiny_bundle, device="cpu")
    expected = scorer.score(CANDIDATES, REFERENCES)
    outcomes = []

    def work():
        try:
            while True:
                outcomes.append(largest_difference(scorer.score(CANDIDATES, REFERENCES), expected))
                first.set()
        except ClosedError as error:
            outcomes.append(error)

    first, thread = threading.Event(), threading.Thread(target=work)
    thread.start()
    assert first.wait(60)
    scorer.close()
    thread.join(60)
    assert not thread.is_alive()
    assert isinstance(outcomes.pop(), ClosedError)
    assert max(outcomes) < 1e-6


@forks
@pytest.mark.parametrize("num_threads", [1, 8])
def test_a_forked_child_scores_like_its_parent(tiny_bundle, num_threads):
    with BERTScorer(tiny_bundle, device="cpu", nthreads=num_threads) as scorer:
        expected = scorer.score(CANDIDATES, REFERENCES)
        scores = in_forked_child(lambda: scorer.score(CANDIDATES, REFERENCES))
    assert largest_difference(scores, expected) < 1e-6


def test_the_signature_names_the_compute_precision(tiny_bundle, bfloat16, baseline_path):
    options = {"rescale_with_baseline": True, "baseline_path": baseline_path}
    with BERTScorer(tiny_bundle, device="openvino", **options) as scorer:
        assert scorer.provider == "OpenVINO"
        assert scorer.signature.precision == "bf16"
        assert scorer.signature.rescale.startswith("file-")


@pytest.fixture(scope="module")
def quick(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", nthreads=3, optimize_for="latency") as quick:
        yield quick


@pytest.mark.parametrize("number", [1, len(CANDIDATES), 50 * len(CANDIDATES)])
def test_latency_gives_the_same_scores_without_more_threads(quick, scorer, number):
    candidates, references = ((texts * 50)[:number] for texts in (CANDIDATES, REFERENCES))
    expected = scorer.score(candidates, references)
    before = threading.active_count()
    found = quick.score(candidates, references)
    assert threading.active_count() == before
    assert largest_difference(found, expected) <= 1e-6
    assert quick.signature == scorer.signature


@pytest.mark.skipif(
    tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 26),
    reason="ONNX Runtime ignores the setting",
)
def test_threads_do_not_go_on_for_long_when_all_is_scored(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", nthreads=8, optimize_for="latency") as scorer:
        scorer.score(CANDIDATES, REFERENCES)
        before = time.process_time()
        time.sleep(0.4)  # eight times as long as they would by default
        assert time.process_time() - before < 0.1


FORK_AFTER_SCORING = """
import os, sys
from bertscore_onnx import BERTScorer
texts = [f"the cat sat {number}" for number in range(500)]
scorer = BERTScorer(sys.argv[1], device="cpu")
scorer.score(texts, texts[::-1])
child = os.fork()
scorer.score(texts, texts[::-1])
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""


@forks
@pytest.mark.slow  # it starts a process
def test_nothing_is_printed_of_a_fork(tiny_bundle, monkeypatch):
    """The tokenizers package can, of threads that it has used before."""
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    done = run_python(FORK_AFTER_SCORING, tiny_bundle)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_one_layer_of_a_bundle_of_all_scores_as_with_all_layers(
    all_layers_bundle, tiny_bundle, layer
):
    with (
        BERTScorer(all_layers_bundle, all_layers=True) as of_all,
        BERTScorer(all_layers_bundle, num_layers=layer, verify=True) as of_one,
    ):
        expected = of_all.score(CANDIDATES, SEVERAL).of_layer(layer)
        scores = of_one.score(CANDIDATES, SEVERAL)
        assert (of_one.num_layers, of_one.signature.layer) == (layer, layer)
        assert [scored.F for scored in of_one.stream([("the cat", "a dog")])] == [
            of_one.score(["the cat"], ["a dog"]).F
        ]
        assert of_one.pairwise(CANDIDATES, REFERENCES).F.shape == (3, 3)
    assert all(np.array_equal(*arrays) for arrays in zip(scores, expected, strict=True))
    if layer == 2:
        with BERTScorer(tiny_bundle) as own:
            assert largest_difference(own.score(CANDIDATES, SEVERAL), scores) <= 1e-6
