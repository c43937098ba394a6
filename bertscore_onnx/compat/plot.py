"""Draws which tokens match, as bert-score's `plot_example` does."""

import numpy as np

from bertscore_onnx.errors import InputError, MissingExtraError
from bertscore_onnx.matching.rescaling import Rescaling, rescale
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.similarity import TokenNames, token_similarity


def draw_similarity(scorer: BERTScorer, candidate: str, reference: str, rescaling: Rescaling, file: str = "") -> None:
    """Draw the cosine similarities of all tokens but the special ones, and show the drawing where there is a screen.

    Args:
        scorer: a scorer of one layer.
        candidate, reference: the texts; each needs a token.
        rescaling: what moves the similarities, by its baseline of F.
        file: where to save the drawing, in the format of its suffix; "" for nowhere.

    Raises:
        MissingExtraError: matplotlib is not installed.
        InputError: the scorer scores all layers, or a text has no token.
    """
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingExtraError(
            "Drawings need matplotlib: `pip install 'bertscore-onnx[plot]'`.", name="matplotlib"
        ) from error
    if scorer.manifest.all_layers:
        raise InputError("A drawing shows one layer, and this scorer has all of them. Make one with `num_layers`.")
    found = token_similarity(scorer, TokenNames(scorer.bundle), candidate, reference)
    rows, columns = (np.flatnonzero(weights) for weights in (found.candidate_weights, found.reference_weights))
    if not (len(rows) and len(columns)):
        raise InputError("A drawing needs a token on both sides, and one of the texts has none.")
    similarity = found.similarity[np.ix_(rows, columns)]  # (cand_tokens, ref_tokens)
    title = "Similarity Matrix"
    if rescaling.baselines:
        similarity = rescale(similarity, rescaling.baselines[0].f1)
        title += " (after Rescaling)"

    figure, axes = plt.subplots(figsize=(max(4, len(columns)), max(3, len(rows))), layout="constrained")
    image = axes.imshow(similarity, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(
        range(len(columns)), [found.reference[column] for column in columns], rotation=45, ha="right", parse_math=False
    )
    axes.set_yticks(range(len(rows)), [found.candidate[row] for row in rows], parse_math=False)
    axes.set(title=title, xlabel="Reference (tokenized)", ylabel="Candidate (tokenized)")
    figure.colorbar(image)
    for (row, column), value in np.ndenumerate(similarity):
        axes.text(column, row, f"{value:.3f}", ha="center", va="center", color="w" if value >= 0.5 else "k")
    if file:
        figure.savefig(file, dpi=100)
    if plt.get_backend().lower() != "agg":
        plt.show()
    plt.close(figure)
