"""The JSON bodies of answers; the OpenAPI document shows their descriptions."""

from typing import Annotated

import msgspec
from msgspec import Meta

from bertscore_onnx.scores import Scores

_Signature = Annotated[
    str,
    Meta(
        description="Everything that affects the scores: the model, its bundle and the settings.",
        examples=["bertscore-onnx|model:all-MiniLM-L6-v2|layer:4|idf:no|rescale:no|tokenizer:slow|…"],
    ),
]
_UsedModel = Annotated[str, Meta(description="The model's name.", examples=["all-MiniLM-L6-v2"])]


class ScoreValue(msgspec.Struct, frozen=True):
    """The score of one candidate."""

    precision: Annotated[float, Meta(description="How well the candidate's tokens match the reference.")]
    recall: Annotated[float, Meta(description="How well the reference's tokens match the candidate.")]
    f1: Annotated[float, Meta(description="Their harmonic mean; with `rescale` each of the three is rescaled.")]
    best_reference: Annotated[
        int, Meta(description="The position from 0 of the reference with the best F1; the first of equals.")
    ]
    truncated: Annotated[
        bool,
        Meta(
            description="Whether the candidate, or a reference, has more tokens than the model's `max_length`, so that "
            "its end does not count."
        ),
    ]


def score_values(scores: Scores) -> list[ScoreValue]:
    """Return the answer for each candidate."""
    columns = [column.tolist() for column in (*scores, scores.best_reference, scores.truncated)]
    return [ScoreValue(*row) for row in zip(*columns, strict=True)]


class ScoreAnswer(msgspec.Struct, frozen=True):
    """The scores of all pairs."""

    signature: _Signature
    model: _UsedModel
    scores: Annotated[list[ScoreValue], Meta(description="One for each pair, in their order.")]


class MatchAnswer(msgspec.Struct, frozen=True):
    """The score of a pair, and the similarity of every token with every other of the best reference.

    If a text is too long for a matrix of similarities, `too_long` is a sentence that names it, and all later fields are
    null. If the request asks for HTML, those after `html` are null.
    """

    signature: _Signature
    model: _UsedModel
    score: Annotated[ScoreValue, Meta(description="The score of the pair.")]
    too_long: Annotated[str | None, Meta(description="Which text has too many tokens to show; null for none.")] = None
    html: Annotated[str | None, Meta(description="The matches as the server's page shows them.")] = None
    candidate: Annotated[
        list[str] | None,
        Meta(
            description="The candidate's tokens as text, special tokens included. A token that is a part of a "
            "character shows it, and which part it is.",
            examples=[["[CLS]", "the", "cat", "東(1/2)", "東(2/2)", "[SEP]"]],
        ),
    ] = None
    reference: Annotated[list[str] | None, Meta(description="The same of the reference with the best F1.")] = None
    similarity: Annotated[
        list[list[float]] | None,
        Meta(
            description="Cosine similarities: a row for each token of the candidate, a column for one of the reference."
        ),
    ] = None
    candidate_weights: Annotated[
        list[float] | None,
        Meta(
            description="The weights of the candidate's tokens in the precision; 1 without idf, 0 for special tokens."
        ),
    ] = None
    reference_weights: Annotated[list[float] | None, Meta(description="The same for the reference, in the recall.")] = (
        None
    )
    candidate_special: Annotated[
        list[bool] | None,
        Meta(description="Which tokens of the candidate are special tokens and not part of its text."),
    ] = None
    reference_special: Annotated[list[bool] | None, Meta(description="The same for the reference.")] = None
    candidate_matches: Annotated[
        list[int] | None,
        Meta(description="The position of the best match of each of the candidate's tokens."),
    ] = None
    reference_matches: Annotated[
        list[int] | None,
        Meta(description="The position of the best match of each of the reference's tokens."),
    ] = None


class ModelInfo(msgspec.Struct, frozen=True):
    """One served model."""

    id: Annotated[str, Meta(description="The name that requests use.", examples=["all-MiniLM-L6-v2"])]
    layer: Annotated[int, Meta(description="The layer that token embeddings are taken from.")]
    precision: Annotated[str, Meta(description="The compute precision.", examples=["fp32"])]
    provider: Annotated[str, Meta(description="The execution provider.", examples=["CPUExecutionProvider"])]
    signature: _Signature
    max_length: Annotated[
        int,
        Meta(
            description="The most tokens of a text; the signature says whether longer ones are truncated, or encoded "
            "in windows of that length.",
            examples=[512],
        ),
    ]
    rescale: Annotated[list[str], Meta(description="The languages to rescale for.", examples=[["en"]])]
    idf: Annotated[list[str], Meta(description="The names of the idf tables.", examples=[["news"]])]


class ModelList(msgspec.Struct, frozen=True):
    """All served models."""

    models: Annotated[list[ModelInfo], Meta(description="In the order of the command line.")]


class Health(msgspec.Struct, frozen=True):
    """The state of the server."""

    status: Annotated[str, Meta(description="`live`, `ready` or `not ready`.", examples=["ready"])]
    reasons: Annotated[list[str], Meta(description="Why it is not ready; empty if it is.")] = []
