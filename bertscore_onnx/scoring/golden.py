"""Checks of a bundle.

Its golden pairs have to score as in the export, and the inputs of a graph by others have to do what
their names promise.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from bertscore_onnx.arrays import Float32Array, Int64Array
from bertscore_onnx.bundle.bundle import Bundle, open_bundle
from bertscore_onnx.bundle.manifest import (
    SCORING_FILE,
    SCORING_INPUTS,
    SCORING_OUTPUTS,
    WEIGHTS_INPUT,
)
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.encoding.encoder import Encoder, PaddedTexts, plan_batches
from bertscore_onnx.encoding.places import HostPlace
from bertscore_onnx.encoding.providers import CPU
from bertscore_onnx.encoding.session import OnnxSession
from bertscore_onnx.errors import EncodingError, GoldenScoreError, GraphError
from bertscore_onnx.files import StrPath
from bertscore_onnx.matching.weights import TokenWeights, idf_of_counts, uniform
from bertscore_onnx.scores import join_scores
from bertscore_onnx.scoring.inputs import Pairs, collect_pairs
from bertscore_onnx.scoring.pipeline import Pipeline
from bertscore_onnx.text.texts import bare_texts

GOLDEN_TOLERANCES: Mapping[Precision, float] = {"fp32": 1e-5, "fp16": 2e-3, "int8": 0.05}
"""The most a golden score may differ from PyTorch's.

Measured on tiny random models of every family: at most 0.001 in fp16 and 0.04 in int8; on MiniLM:
0.0001 and 0.008. A wrong graph is off by more, but for fp16's fusions, which the export checks in
fp32.
"""

_TOLERANCES_OF_PROVIDERS = {"bf16": 0.05}
"""The same for a compute precision that an execution provider chooses."""


def golden_pipeline(folder: StrPath, *, device: str | None = None) -> Pipeline:
    """Return a pipeline for the golden pairs of a bundle.

    The digests of all its files are checked first.
    """
    return Pipeline(open_bundle(folder, verify=True), device=device)


def golden_difference(pipeline: Pipeline) -> float:
    """Return how far the scores of golden pairs are from the manifest's.

    This is the largest absolute difference. The pipeline must truncate long texts, as
    `golden_pipeline` does.
    """
    manifest = pipeline.manifest
    if not manifest.golden:
        raise GoldenScoreError(
            "The bundle has no golden scores to verify it by. Export the model again.",
        )
    candidates = []
    references = []
    scores = []
    for pair in manifest.golden:
        candidates.append(pair.candidate)
        references.append(pair.reference)
        scores.append((pair.precision, pair.recall, pair.f1))
    computed = _raw_scores(pipeline, collect_pairs(candidates, references), uniform(manifest))
    expected = np.array(scores)  # (pairs, 3, layers)
    return float(np.abs(computed - expected.transpose(1, 2, 0)).max())


def difference_by_pairs(bundle: Bundle, *, device: str | None = None) -> float:
    """Return how far the scoring graph's scores are from the encoder's.

    This is the largest absolute difference over the bundle's golden pairs. Pairs with an empty text
    are added, and weights are uniform and then the idf in the references. The two graphs are loaded
    one after the other, so that memory suffices.
    """
    manifest = bundle.manifest
    first = manifest.golden[0]
    candidates = [pair.candidate for pair in manifest.golden]
    candidates += ["", first.candidate]
    references = [pair.reference for pair in manifest.golden]
    references += [first.reference, ""]
    pairs = collect_pairs(candidates, references)
    with Pipeline(bundle, device=device) as pipeline:
        counts = pipeline.count_documents([pairs.references])
        idf = idf_of_counts(counts, manifest, pipeline.tokenization)
        tables = (uniform(manifest), idf)
        expected = [_raw_scores(pipeline, pairs, weights) for weights in tables]
        sequences, _ = pipeline.tokenizer(bare_texts(pairs.texts))
        if pipeline.encoder.session.provider.engine != "onnxruntime":
            device = CPU.device  # scoring graphs are for ONNX Runtime, as they have optional inputs
    # The candidates of all pairs come first, then their references.
    num_pairs = len(sequences) // 2
    sides = (sequences[:num_pairs], sequences[num_pairs:])
    by_graph = _scores_by_graph(bundle, device, sides, tables)  # (tables, 3, layers, pairs)
    return float(np.abs(by_graph - np.array(expected)).max())


def _scores_by_graph(
    bundle: Bundle,
    device: str | None,
    sides: Sequence[Sequence[Int64Array]],
    tables: Sequence[TokenWeights],
) -> Float32Array:
    """Return P, R and F by the scoring graph, (tables, 3, layers, pairs).

    `sides` are the ids of the candidates and of the references.
    """
    manifest = bundle.manifest
    layers = bundle.stacked_layers
    stacked = [layers] if layers else []
    shape: list[int | str] = [*stacked, "pairs"]
    session = OnnxSession(
        bundle,
        bundle.path / SCORING_FILE,
        SCORING_INPUTS,
        dict.fromkeys(SCORING_OUTPUTS, shape),
        device=device,
    )
    lengths = np.array([list(map(len, side)) for side in sides]).max(axis=0)  # (pairs,)
    max_tokens = session.provider.max_tokens(manifest.hidden_size) // 2  # of either side
    batches = list(plan_batches(lengths, max_tokens))
    padded = [PaddedTexts(side, batches, manifest) for side in sides]
    scores = np.empty((len(tables), 3, layers or 1, len(lengths)), dtype=np.float32)
    for table_scores, weights in zip(scores, tables, strict=True):
        table = {} if weights.is_uniform else {WEIGHTS_INPUT: np.nan_to_num(weights.table)}
        for number, batch in enumerate(batches):
            arrays = chain.from_iterable(side.batch(number) for side in padded)
            feed = dict(zip(SCORING_INPUTS, arrays, strict=True))
            outputs = np.empty((3, *stacked, len(batch)), dtype=np.float32)
            session.run(feed, list(map(HostPlace, outputs)), table)
            table_scores[:, :, batch] = outputs.reshape(3, -1, len(batch))
    session.close()
    return scores


def golden_tolerance(pipeline: Pipeline) -> float:
    """Return the largest difference to accept.

    It is that of the bundle's precision, or of the provider's if this is larger.
    """
    of_bundle = GOLDEN_TOLERANCES[pipeline.manifest.precision]
    of_provider = _TOLERANCES_OF_PROVIDERS.get(pipeline.encoder.precision, 0.0)
    return max(of_bundle, of_provider)


def check_golden(bundle: Bundle, encoder: Encoder) -> None:
    """Raise a GoldenScoreError if an encoder scores golden pairs differently.

    Their scores are compared with those in the manifest.
    """
    pipeline = Pipeline(bundle, encoder=encoder)
    name = pipeline.manifest.model_id
    try:
        difference = golden_difference(pipeline)
    except EncodingError as error:
        raise GoldenScoreError(
            f"The golden pairs of {name} cannot be scored: {error} Export the model again."
        ) from error
    tolerance = golden_tolerance(pipeline)
    if not difference <= tolerance:
        raise GoldenScoreError(
            f"The golden scores of {name} differ by {difference:.1e} from those it was exported "
            f"with; at most {tolerance:.0e} is expected in {encoder.precision}. "
            "Export the model again, or copy the bundle again."
        )


def check_inputs(pipeline: Pipeline) -> None:
    """Raise a GraphError if inputs do not do what their names promise.

    These are the ids and the mask of a graph by others. No score of the export takes part. Masked
    tokens behind a text must not move its vectors; they stand behind padding, since convolutions
    may reach into that. Masking one of its tokens must move others, and another id its own vector.
    """
    manifest = pipeline.manifest
    length = manifest.max_length or _GAP + 2 * _TOKENS
    num = min(_TOKENS, length // 2)
    gap = np.full(min(_GAP, length - 2 * num), manifest.pad_id)
    # Ids from the middle of the vocabulary are away from special tokens.
    ids = (manifest.vocab_size // 2 + np.arange(3 * num + 2)) % manifest.vocab_size
    text, tail, other_tail, spare = np.split(ids[ids != manifest.pad_id], [num, 2 * num, 3 * num])
    changed = np.where(np.arange(num) == 1, spare[0], text)
    rows = np.array(
        [
            np.concatenate([text, gap, tail]),
            np.concatenate([text, gap, other_tail]),
            np.concatenate([text, gap, tail]),  # with the second token masked
            np.concatenate([changed, gap, tail]),
        ],
    )
    mask = np.zeros_like(rows)
    mask[:, :num] = 1
    mask[2, 1] = 0
    vectors = pipeline.encoder.unit_vectors(rows, mask)[0, :, :num]
    plain, with_other_tail, with_masked, with_changed = vectors
    by_id = _distances(with_changed, plain)
    if not by_id[1] > _MOVED:
        raise GraphError(
            "The graph's input_ids move nothing where attention_mask is 1, as if exchanged with "
            f"another input, or the mask inverted. {_RIGHT_INPUTS}"
        )
    if "attention_mask" not in manifest.inputs or manifest.num_layers == 0:
        return

    by_mask = _distances(with_masked, plain)
    if not np.delete(by_mask, 1).max() > _MOVED:
        message = "The graph ignores its attention_mask: masking a token moves no other."
        raise GraphError(f"{message} {_RIGHT_INPUTS}")
    hidden = _distances(with_other_tail, plain).max()
    if manifest.padding:
        alone = pipeline.encoder.unit_vectors(text[None], mask[:1, :num])[0]
        hidden = max(hidden, _distances(alone, plain).max())
    if not hidden <= max(_STILL, golden_tolerance(pipeline)):
        raise GraphError(
            "The graph's attention_mask does not hide tokens: masked ones behind a text move its "
            f"unit vectors by {hidden:.2g}, as if it were inverted, or exchanged with another "
            f"input. {_RIGHT_INPUTS}"
        )


def _distances(vectors: Float32Array, plain: Float32Array) -> Float32Array:
    """Return how far each vector has moved, (tokens,)."""
    return np.linalg.norm(vectors - plain, axis=-1)


_TOKENS = 8
"""The tokens of a text whose vectors are compared."""

_GAP = 64
"""The padding behind a text: more than convolutions reach over."""

_STILL = 1e-3
"""Unit vectors that are closer are the same but for rounding."""

_MOVED = 1e-5
"""A graph that ignores an input moves no vector; any other moves them by some hundredths."""

_RIGHT_INPUTS = (
    "Export it again with the names of its inputs in the order of the model's arguments, or the "
    "model itself with --model."
)


def _raw_scores(pipeline: Pipeline, pairs: Pairs, weights: TokenWeights) -> Float32Array:
    """Return P, R and F, (3, layers, pairs)."""
    scores = [scores_of_slice for scores_of_slice, _ in pipeline.score(pairs.slices(), weights)]
    return np.stack(list(join_scores(scores, len(pipeline.manifest.layers))))
