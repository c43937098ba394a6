"""Chunks of pairs, and which threads of a process compute while it scores."""

import itertools
import weakref
from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.providers import CPU
from bertscore_onnx.matching.pairs import match_pairs
from bertscore_onnx.matching.weights import uniform
from bertscore_onnx.scoring.inputs import Pairs, Side, singles
from bertscore_onnx.scoring.pipeline import Chunk, Pipeline
from bertscore_onnx.text.tokenizer import tokenise
from harness.gpu import CHOICE, like_cuda
from tests.support.manifests import with_fields
from tests.support.processes import run_python
from tests.support.scores import CANDIDATES, REFERENCES, largest_difference

PAIRS = list(itertools.product(CANDIDATES, REFERENCES))

MANY_CANDIDATES, MANY_REFERENCES = map(list, zip(*PAIRS, strict=True))


@pytest.mark.parametrize(("nthreads", "most"), [(1, 1), (2, 2)])
def test_few_chunks_are_in_memory(tiny_bundle, monkeypatch, small_chunks, nthreads, most):
    chunks = embeddings_of_chunks(monkeypatch)
    alive = []  # how many there are whenever one is matched

    def count_and_match(*arguments):
        alive.append(sum(vectors() is not None for *_, vectors in chunks))
        return match_pairs(*arguments)

    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.match_pairs", count_and_match)
    with BERTScorer(tiny_bundle, nthreads=nthreads) as scorer:
        assert len(list(scorer.stream(PAIRS * 8))) == len(PAIRS) * 8
    assert len(chunks) == 18
    assert 1 <= max(alive) <= most


def test_equal_texts_of_a_chunk_are_encoded_once(scorer, monkeypatch):
    chunks = embeddings_of_chunks(monkeypatch)
    scorer.score(["a cat", " a  cat", "a cat"], [["the dog", "a cat"], ["the dog"], ["the dog "]])
    [(_, size, _)] = chunks
    assert size == 4 * 32 * (4 + 4)  # a cat, the dog, each with its two special tokens


def embeddings_of_chunks(monkeypatch):
    """Return a list that grows by the number of texts of each chunk, the bytes of its vectors, and
    a weak reference.
    """
    from bertscore_onnx.encoding.encoder import Encoder

    original, chunks = Encoder.run, []

    def run(*arguments, **options):
        embeddings = original(*arguments, **options)
        assert isinstance(embeddings.vectors, np.ndarray)
        chunks.append(
            (len(embeddings.lengths), embeddings.vectors.nbytes, weakref.ref(embeddings.vectors))
        )
        return embeddings

    monkeypatch.setattr(Encoder, "run", run)
    return chunks


@pytest.fixture(scope="module")
def pipeline(tiny_bundle):
    with Pipeline(open_bundle(tiny_bundle), device="cpu") as pipeline:
        yield pipeline


def test_padding_that_stands_in_for_an_empty_text_is_no_token_of_a_document(fast_bundle):
    bundle = open_bundle(fast_bundle)
    with Pipeline(
        with_fields(bundle, empty_ids=[bundle.manifest.pad_id]), device="cpu"
    ) as pipeline:
        counts = pipeline.count_documents([singles(["a cat", ""])])
    assert counts.num_documents == 2
    assert bundle.manifest.pad_id not in counts.tokens


def slices(*pairs):
    """Return slices of one pair of texts each."""
    one = np.array([1])
    return [Pairs(Side([candidate], one), Side([reference], one)) for candidate, reference in pairs]


def test_only_new_texts_are_tokenised(pipeline):
    new = []

    def tokenise_and_record(texts):
        new.append(texts)
        return tokenise(pipeline.tokenizer, texts, " ")

    texts = Chunk(tokenise_and_record, pipeline.model)
    for pairs in slices(("a cat", "a dog"), ("a dog", "red")):
        texts.add(pairs)
    assert new == [["a cat", "a dog"], ["red"]]


def limit_chunks(monkeypatch, max_tokens):
    """Let a chunk of scorers from now on be full with this many tokens of the hidden size 32."""
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_BYTES", 4 * 32 * max_tokens)


@pytest.fixture
def chunk_sizes(tiny_bundle, monkeypatch):
    """Return a function that scores pairs and returns how many candidates each chunk has."""

    def sizes(slices, *, max_tokens=10_000, max_candidates=99, provider=CPU):
        monkeypatch.setattr(CHOICE, lambda device: [provider])
        monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", max_candidates)
        limit_chunks(monkeypatch, max_tokens)
        with Pipeline(open_bundle(tiny_bundle)) as pipeline:
            return [
                scores.F.shape[1]
                for scores, _ in pipeline.score(slices, uniform(pipeline.manifest))
            ]

    return sizes


@pytest.mark.parametrize(
    ("pairs", "limits", "expected"),
    [
        pytest.param(
            [("a cat", "a cat")] * 7, {"max_candidates": 3}, [3, 3, 1], id="full by candidates"
        ),
        pytest.param(
            # 6 tokens each
            [("a", "cat"), ("dog", "sat"), ("mat", "on"), ("sits", "ran"), ("red", "blue")],
            {"max_tokens": 12},
            [2, 2, 1],
            id="full by tokens",
        ),
        pytest.param(
            [("a cat", "a dog")] * 50,
            {"max_tokens": 10},
            [50],
            id="texts that occur again fill nothing",
        ),
        pytest.param([], {}, [], id="no pairs"),
    ],
)
def test_a_chunk_is_full_by_candidates_or_tokens(chunk_sizes, pairs, limits, expected):
    assert chunk_sizes(slices(*pairs), **limits) == expected


@pytest.mark.parametrize("long_text", ["truncate", "window"])
@pytest.mark.parametrize("bundle", ["tiny_bundle", "all_layers_bundle"])
@pytest.mark.filterwarnings("ignore:.*truncated:UserWarning")
def test_scores_with_the_limits_of_a_gpu_are_those_of_the_cpu(
    request, bundle, long_text, monkeypatch, small_chunks
):
    candidates = [*MANY_CANDIDATES, "the cat sat on the mat. " * 9, "a dog ran " * 30]
    references = [*MANY_REFERENCES, "a dog", "the cat sat on the mat. " * 7]
    options = {"long_text": long_text, "all_layers": bundle == "all_layers_bundle"}
    with BERTScorer(request.getfixturevalue(bundle), device="cpu", **options) as scorer:
        expected = scorer.score(candidates, references)
    monkeypatch.setattr(
        CHOICE, lambda device: [like_cuda(batch_values=32 * 256, min_batch_tokens=1)]
    )
    with BERTScorer(request.getfixturevalue(bundle), **options) as scorer:
        found = scorer.score(candidates, references)
    assert largest_difference(found, expected) <= 1e-6


def test_chunks_are_larger_where_the_provider_wants_that(chunk_sizes):
    provider = replace(CPU, chunk_scale=3)
    assert chunk_sizes(slices(*[("a cat", "a cat")] * 29), max_candidates=4, provider=provider) == [
        12,
        12,
        5,
    ]


@pytest.mark.parametrize("more", [[], ["a cat sits"]])
def test_candidates_of_the_same_references_are_in_one_chunk(scorer, monkeypatch, more):
    monkeypatch.setattr("bertscore_onnx.scoring.pipeline.CHUNK_CANDIDATES", 4)
    chunks = embeddings_of_chunks(monkeypatch)
    words = ["a", "the", "cat", "dog", "mat", "sat", "ran", "on", "red", "blue"]
    texts = [" ".join(text) for text in itertools.product(words, repeat=3)]
    references = [[text, *more] for text in texts[500:550] for _ in range(10)]
    scorer.score(texts[:500], references)
    assert len(chunks) > 5
    assert sum(number for number, _, _ in chunks) == 500 + 50 + len(more) * len(chunks)


COMPUTING_THREADS = """
import sys, time
from bertscore_onnx import BERTScorer

texts = [f"the cat sat on {number} mats and {number + 7} dogs saw it" for number in range(3000)]
with BERTScorer(sys.argv[1], nthreads=int(sys.argv[2]) or None, device="cpu") as scorer:
    own, all_threads = time.thread_time(), time.process_time()
    scorer.score(texts, texts[::-1])
    own, all_threads = time.thread_time() - own, time.process_time() - all_threads
print(own, all_threads - own)
"""


@pytest.mark.slow  # it starts processes
@pytest.mark.parametrize(
    ("bundle", "openmp", "nthreads", "shared_out"),
    [
        ("tiny_bundle", "1", None, False),
        ("tiny_bundle", "", 1, False),
        ("tiny_bundle", "1", 2, True),
        ("fast_bundle", "", 1, False),
    ],
)
def test_with_one_thread_only_that_of_the_caller_computes(
    request, bundle, openmp, nthreads, shared_out
):
    done = run_python(
        COMPUTING_THREADS, request.getfixturevalue(bundle), nthreads or 0, OMP_NUM_THREADS=openmp
    )
    own, others = map(float, done.stdout.split())
    assert (others > own / 10) is shared_out
