"""Verifies a bundle: the model itself, the runtime and the scoring graph must give the golden pairs the same scores."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.errors import EncodingError, GraphError, VerificationError
from bertscore_onnx.scoring.golden import (
    GOLDEN_TOLERANCES,
    check_inputs,
    difference_by_pairs,
    golden_difference,
    golden_pipeline,
    golden_tolerance,
    score_ids,
)
from bertscore_onnx_export.model.source import first_line

LONGEST = 1280
"""The most tokens of the long text of a verification: few enough for any memory, which grows with their square."""


@dataclass(frozen=True, slots=True)
class LongPair:
    """A text at the maximum length of a bundle, or of more tokens than its model has positions, and a short one."""

    candidate: list[int]
    """Its token ids."""

    reference: list[int]

    scores: NDArray[np.float32]
    """P and R in PyTorch, (2, layers)."""


def verify_bundle(folder: Path, long_pair: LongPair | None = None) -> float:
    """Return the largest difference between the runtime's scores of a bundle's golden pairs and PyTorch's.

    Raises a VerificationError above the tolerance of the bundle's precision, which also holds for a long pair: a trace
    may have fixed a length. Raises a GraphError if a published graph has other inputs than their names say.
    """
    with golden_pipeline(folder, device="cpu") as pipeline:
        precision = pipeline.manifest.precision
        if pipeline.manifest.is_published:
            check_inputs(pipeline)
        try:
            difference, tolerance = golden_difference(pipeline), golden_tolerance(pipeline)
        except EncodingError as error:
            raise VerificationError(
                f"The exported graph gives infinite or undefined vectors in {precision}. The bundle was not kept. fp32 "
                "has a larger range than fp16, but does not help if the model's weights are damaged."
            ) from error
        if not difference <= tolerance:
            raise _different(difference, "the golden pairs", tolerance, precision)
        if long_pair is not None:
            text = f"a text of {len(long_pair.candidate)} tokens"
            try:
                precision_and_recall = score_ids(pipeline, long_pair.candidate, long_pair.reference)[:2]
            except EncodingError as error:
                raise VerificationError(
                    f"The exported graph fails on {text}: {first_line(error).rstrip('.')}. The bundle was not kept."
                ) from error
            long_difference = float(np.abs(precision_and_recall - long_pair.scores).max())
            if not long_difference <= tolerance:
                raise _different(long_difference, text, tolerance, precision)
    return difference


def _different(difference: float, texts: str, tolerance: float, precision: str) -> VerificationError:
    return VerificationError(
        f"The exported graph differs from the model that it was made of by {difference:.1e} on {texts}; at most "
        f"{tolerance:.0e} is accepted in {precision}. The bundle was not kept."
    )


def verify_scoring_graph(folder: Path) -> float:
    """Return the largest difference between the scores of the scoring graph and of the runtime for the golden pairs.

    Raises a VerificationError above the tolerance of the bundle's precision.
    """
    bundle = open_bundle(folder, verify=True)
    try:
        difference, tolerance = difference_by_pairs(bundle, device="cpu"), GOLDEN_TOLERANCES[bundle.manifest.precision]
    except (EncodingError, GraphError) as error:
        raise VerificationError(
            f"The scoring graph cannot be used: {error} The bundle was not kept; export without --scoring-graph."
        ) from error
    if not difference <= tolerance:
        raise VerificationError(
            f"The scores of the scoring graph differ from the runtime's by {difference:.1e} on the golden pairs; at "
            f"most {tolerance:.0e} is accepted. The bundle was not kept; export without --scoring-graph."
        )
    return difference
