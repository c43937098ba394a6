"""Verifies a bundle: the model itself, the runtime and the scoring graph must give the golden pairs the same scores."""

from pathlib import Path

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.errors import EncodingError, GraphError, VerificationError
from bertscore_onnx.scoring.golden import (
    GOLDEN_TOLERANCES,
    difference_by_pairs,
    golden_difference,
    golden_pipeline,
    golden_tolerance,
)


def verify_bundle(folder: Path) -> float:
    """Return the largest difference between the runtime's scores of a bundle's golden pairs and PyTorch's.

    Raises a VerificationError above the tolerance of the bundle's precision.
    """
    with golden_pipeline(folder, device="cpu") as pipeline:
        precision = pipeline.manifest.precision
        try:
            difference, tolerance = golden_difference(pipeline), golden_tolerance(pipeline)
        except EncodingError as error:
            raise VerificationError(
                f"The exported graph gives infinite or undefined vectors in {precision}. The bundle was not kept. fp32 "
                "has a larger range than fp16, but does not help if the model's weights are damaged."
            ) from error
    if not difference <= tolerance:
        raise VerificationError(
            f"The exported graph differs from the PyTorch model by {difference:.1e} on the golden pairs; at most "
            f"{tolerance:.0e} is accepted in {precision}. The bundle was not kept."
        )
    return difference


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
