"""Compares the scores of a bundle's golden pairs with those that it was exported with."""

from collections.abc import Mapping
from os import PathLike

import numpy as np

from bertscore_onnx.bundle.opening import open_bundle
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.errors import EncodingError, GoldenScoreError
from bertscore_onnx.matching.weights import no_idf
from bertscore_onnx.scores import join_scores
from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx.scoring.pipeline import Pipeline, load_tokenizer
from bertscore_onnx.scoring.text_warnings import Notices

GOLDEN_TOLERANCES: Mapping[Precision, float] = {"fp32": 1e-5, "fp16": 2e-3, "int8": 0.05}
"""The most a golden score may differ from PyTorch's.

Measured on tiny random models of every family: at most 0.001 in fp16 and 0.04 in int8; on MiniLM: 0.0001 and 0.008. A
wrong graph is off by more, but for fp16's fusions, which the export checks in fp32.
"""

_TOLERANCES_OF_DEVICES = {"bf16": 0.05}
"""The same for arithmetic that a device brings in."""


def golden_pipeline(folder: str | PathLike[str], *, device: object = None) -> Pipeline:
    """Return a pipeline for the golden pairs of a bundle, whose files are all read for their digests.

    The pairs are not scored yet.

    Raises:
        BundleError, DeviceError, MissingExtraError: as `BERTScorer` says.
    """
    bundle = open_bundle(folder, verify=True)
    return Pipeline(bundle.manifest, load_tokenizer(bundle), Encoder(bundle, device=device))


def golden_difference(pipeline: Pipeline) -> float:
    """Score a bundle's golden pairs and return the largest absolute difference from the manifest's scores.

    Args:
        pipeline: a pipeline of the bundle that cuts long texts, such as `golden_pipeline` makes.

    Raises:
        EncodingError: the model gave something other than finite vectors.
        GoldenScoreError: there are no golden pairs.
    """
    manifest = pipeline.manifest
    if not manifest.golden:
        raise GoldenScoreError("The bundle has no golden scores to be verified by. Export the model again.")
    pairs = collect_pairs([pair.candidate for pair in manifest.golden], [pair.reference for pair in manifest.golden])
    parts = list(pipeline.score(pairs.slices(), no_idf(manifest), Notices(max_length=pipeline.max_length)))
    computed = np.stack(list(join_scores(parts, len(manifest.layers))))  # (3, layers, pairs)
    expected = np.array([(pair.precision, pair.recall, pair.f1) for pair in manifest.golden])  # (pairs, 3, layers)
    return float(np.abs(computed - expected.transpose(1, 2, 0)).max())


def golden_tolerance(pipeline: Pipeline) -> float:
    """Return the most that the difference may be, in the bundle's precision and the device's."""
    return max(
        GOLDEN_TOLERANCES[pipeline.manifest.precision], _TOLERANCES_OF_DEVICES.get(pipeline.encoder.precision, 0.0)
    )


def check_golden(pipeline: Pipeline) -> None:
    """Score a bundle's golden pairs and compare them with the manifest's scores.

    Args:
        pipeline: as in `golden_difference`.

    Raises:
        GoldenScoreError: they differ by more than the precision explains, or there are none to compare.
    """
    name, precision = pipeline.manifest.model_id, pipeline.encoder.precision
    try:
        difference = golden_difference(pipeline)
    except EncodingError as error:
        raise GoldenScoreError(
            f"The golden pairs of {name} cannot be scored: {error} Export the model again."
        ) from error
    tolerance = golden_tolerance(pipeline)
    if not difference <= tolerance:
        raise GoldenScoreError(
            f"The golden scores of {name} differ by {difference:.1e} from those it was exported with; at most "
            f"{tolerance:.0e} is expected in {precision}. Export the model again, or copy the bundle anew."
        )
