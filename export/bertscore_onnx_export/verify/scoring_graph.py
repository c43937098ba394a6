"""Verifies a scoring graph: it and the runtime must give the golden pairs the same scores."""

from pathlib import Path

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.errors import EncodingError, GraphError, VerificationError
from bertscore_onnx.scoring.golden import GOLDEN_TOLERANCES, difference_by_pairs


def verify_scoring_graph(folder: Path) -> float:
    """Score a bundle's golden pairs by its scoring graph and by the encoder; return the largest absolute difference.

    Raises:
        VerificationError: it is more than `GOLDEN_TOLERANCES` says, or the graph does not run.
    """
    bundle = open_bundle(folder, verify=True)
    try:
        difference, tolerance = difference_by_pairs(bundle, device="cpu"), GOLDEN_TOLERANCES[bundle.manifest.precision]
    except (EncodingError, GraphError) as error:
        raise VerificationError(
            f"The scoring graph cannot be used: {error} The bundle was not kept; without --scoring-graph there is none."
        ) from error
    if not difference <= tolerance:
        raise VerificationError(
            f"The scores of the scoring graph differ from the runtime's by {difference:.1e} on the golden pairs; at "
            f"most {tolerance:.0e} is accepted. The bundle was not kept; without --scoring-graph there is none."
        )
    return difference
