"""Verifies a bundle.

The model itself, the runtime and the scoring graph must give the golden pairs the same scores.
"""

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
)
from bertscore_onnx_export.model.source import first_line

HARMLESS = 1e-4
"""The largest change of a coordinate that leaves a unit vector the same in fp32."""


@dataclass(frozen=True, slots=True)
class LongText:
    """A text at the maximum length of a bundle.

    If none is stated, it has more tokens than its model has positions.
    """

    ids: list[int]

    vectors: NDArray[np.float32]
    """Its unit vectors in PyTorch, (layers, tokens, hidden)."""


def verify_bundle(folder: Path, long_text: LongText | None = None) -> float:
    """Return how much the runtime's scores differ from PyTorch's.

    It is the largest difference for a bundle's golden pairs.

    Raises a VerificationError above the tolerance of the bundle's precision, or if the vectors of a
    long text differ: a trace may have fixed a length, or the runtime may compute distances
    otherwise. Raises a GraphError if a published graph has other inputs than their names say.
    """
    with golden_pipeline(folder, device="cpu") as pipeline:
        precision = pipeline.manifest.precision
        if pipeline.manifest.is_published:
            check_inputs(pipeline)
        try:
            difference = golden_difference(pipeline)
            tolerance = golden_tolerance(pipeline)
        except EncodingError as error:
            raise VerificationError(
                f"The exported graph gives infinite or undefined vectors in {precision}. The "
                "bundle was not kept. fp32 has a larger range than fp16, but does not help if "
                "the model's weights are damaged."
            ) from error
        if not difference <= tolerance:
            raise _different(difference, "the golden pairs", tolerance, precision)
        if long_text is not None:
            text = f"a text of {len(long_text.ids)} tokens"
            ids = np.array([long_text.ids])
            try:
                # (layers, tokens, hidden)
                vectors = pipeline.encoder.unit_vectors(ids, np.ones_like(ids))[:, 0]
            except EncodingError as error:
                raise VerificationError(
                    f"The exported graph fails on {text}: {first_line(error).rstrip('.')}. The "
                    "bundle was not kept."
                ) from error
            if precision == "fp32":
                change = float(np.abs(vectors - long_text.vectors).max())
                tolerance = HARMLESS
            else:  # by similarity, as the scores
                change = float((1 - (vectors * long_text.vectors).sum(axis=-1)).mean(axis=-1).max())
            if not change <= tolerance:
                raise _different(change, text, tolerance, precision)
    return difference


def _different(
    difference: float, texts: str, tolerance: float, precision: str
) -> VerificationError:
    return VerificationError(
        f"The exported graph differs from the model that it was made of by {difference:.1e} on "
        f"{texts}; at most {tolerance:.0e} is accepted in {precision}. The bundle was not kept."
    )


def verify_scoring_graph(folder: Path) -> float:
    """Return how much the scoring graph differs from the runtime.

    It is the largest difference between their scores of the golden pairs.

    Raises a VerificationError above the tolerance of the bundle's precision.
    """
    bundle = open_bundle(folder, verify=True)
    try:
        difference = difference_by_pairs(bundle, device="cpu")
        tolerance = GOLDEN_TOLERANCES[bundle.manifest.precision]
    except (EncodingError, GraphError) as error:
        raise VerificationError(
            f"The scoring graph cannot be used: {error} The bundle was not kept; export without "
            "--scoring-graph."
        ) from error
    if not difference <= tolerance:
        raise VerificationError(
            f"The scores of the scoring graph differ from the runtime's by {difference:.1e} on "
            f"the golden pairs; at most {tolerance:.0e} is accepted. The bundle was not kept; "
            "export without --scoring-graph."
        )
    return difference
