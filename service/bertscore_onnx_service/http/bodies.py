"""The JSON bodies of requests and answers.

Holds their schemas, which the OpenAPI document shows, and decoding and checks.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from bertscore_onnx.errors import InputError, json_fault
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs, Side, singles
from bertscore_onnx.tables.json_lines import unique_keys
from bertscore_onnx.text.texts import Text, in_context
from bertscore_onnx_service.http.errors import ApiError

_ModelName = Annotated[
    str | None, Meta(description="A served model; may be left out where there is only one.")
]
_Rescale = Annotated[
    str | bool | None,
    Meta(
        description="The language whose baseline to rescale with, one of the model's `rescale`; "
        "false or null for raw scores. The similarities of tokens stay as they are.",
        examples=["en"],
    ),
]
_Idf = Annotated[
    str | None,
    Meta(
        description="The idf table to weigh tokens with, one of the model's `idf`; null for none."
    ),
]
B = TypeVar("B")


class PairBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate and its reference, or several of which the best counts: `reference` or
    `references`, not both.
    """

    candidate: Annotated[str, Meta(description="The text to score.")]
    reference: Annotated[str | None, Meta(description="The one text to compare it with.")] = None
    references: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None,
        Meta(description="The texts to compare it with, of which the one with the best F1 counts."),
    ] = None

    context: Annotated[
        str | list[str] | None,
        Meta(
            description="The context of both texts, encoded but not matched, or matched without "
            "weight: a text, or a list of sentences."
        ),
    ] = None

    @property
    def all_references(self) -> list[str]:
        """The references, from either field."""
        return self.references or [self.reference or ""]


class ScoreEnvelope(msgspec.Struct, Generic[B], frozen=True, forbid_unknown_fields=True):
    """Pairs, decoded or not yet, and how to score them."""

    pairs: Annotated[list[B], Meta(description="What to score, each by itself.")]
    model: _ModelName = None
    rescale: _Rescale = None
    idf: _Idf = None


class ScoreBody(ScoreEnvelope[PairBody], frozen=True, forbid_unknown_fields=True):
    """Pairs, and how to score them."""


class MatchBody(PairBody, frozen=True, forbid_unknown_fields=True):
    """One pair, and how to score it."""

    model: _ModelName = None
    rescale: _Rescale = None
    idf: _Idf = None
    html: Annotated[
        bool, Meta(description="Whether to return the matches as HTML, not as numbers.")
    ] = False

    @property
    def pairs(self) -> list[PairBody]:
        """The pair, as `ScoreBody` has its pairs."""
        return [self]


# Answers.

_Signature = Annotated[
    str,
    Meta(
        description="Everything that affects the scores: the model, its bundle and the settings.",
        examples=[
            "bertscore-onnx|model:all-MiniLM-L6-v2|layer:4|idf:no|rescale:no|tokenizer:slow|…"
        ],
    ),
]
_UsedModel = Annotated[str, Meta(description="The model's name.", examples=["all-MiniLM-L6-v2"])]


class ScoreValue(msgspec.Struct, frozen=True):
    """The score of one candidate."""

    precision: Annotated[
        float, Meta(description="How well the candidate's tokens match the reference.")
    ]
    recall: Annotated[
        float, Meta(description="How well the reference's tokens match the candidate.")
    ]
    f1: Annotated[
        float,
        Meta(description="Their harmonic mean; with `rescale` each of the three is rescaled."),
    ]
    best_reference: Annotated[
        int,
        Meta(
            description=(
                "The position from 0 of the reference with the best F1; the first of equals."
            )
        ),
    ]
    truncated: Annotated[
        bool,
        Meta(
            description="Whether the candidate, or a reference, has more tokens than the model's "
            "`max_length`, so that its end does not count."
        ),
    ]
    unknown: Annotated[
        float,
        Meta(
            description="The share of tokens that are unknown to the model, from 0 to 1: in the "
            "candidate, or in a reference that has more of them."
        ),
    ]


def score_values(scores: Scores) -> list[ScoreValue]:
    """Return the answer for each candidate."""
    columns = [
        column.tolist()
        for column in (*scores, scores.best_reference, scores.truncated, scores.unknown)
    ]
    return [
        ScoreValue(
            precision=p, recall=r, f1=f, best_reference=best, truncated=truncated, unknown=unknown
        )
        for p, r, f, best, truncated, unknown in zip(*columns, strict=True)
    ]


class ScoreAnswer(msgspec.Struct, frozen=True):
    """The scores of all pairs."""

    signature: _Signature
    model: _UsedModel
    scores: Annotated[list[ScoreValue], Meta(description="One for each pair, in their order.")]


class MatchAnswer(msgspec.Struct, frozen=True):
    """The score of a pair, and the similarity of every token with every other of the best
    reference.

    If a text is too long for a matrix of similarities, `too_long` is a sentence that names it, and
    all later fields are null. If the request asks for HTML, those after `html` are null.
    """

    signature: _Signature
    model: _UsedModel
    score: Annotated[ScoreValue, Meta(description="The score of the pair.")]
    too_long: Annotated[
        str | None, Meta(description="Which text has too many tokens to show; null for none.")
    ] = None
    html: Annotated[
        str | None, Meta(description="The matches as the server's page shows them.")
    ] = None
    candidate: Annotated[
        list[str] | None,
        Meta(
            description="The candidate's tokens as text, special tokens included. A token that is "
            "a part of a character shows it, and which part it is.",
            examples=[["[CLS]", "the", "cat", "東(1/2)", "東(2/2)", "[SEP]"]],
        ),
    ] = None
    reference: Annotated[
        list[str] | None, Meta(description="The same of the reference with the best F1.")
    ] = None
    similarity: Annotated[
        list[list[float]] | None,
        Meta(
            description=(
                "Cosine similarities: a row for each token of the candidate, a column for one of "
                "the reference."
            )
        ),
    ] = None
    candidate_weights: Annotated[
        list[float] | None,
        Meta(
            description=(
                "The weights of the candidate's tokens in the precision; 1 without idf, 0 for "
                "special tokens."
            )
        ),
    ] = None
    reference_weights: Annotated[
        list[float] | None, Meta(description="The same for the reference, in the recall.")
    ] = None
    candidate_special: Annotated[
        list[bool] | None,
        Meta(
            description="Which tokens of the candidate are special tokens and not part of its text."
        ),
    ] = None
    reference_special: Annotated[
        list[bool] | None, Meta(description="The same for the reference.")
    ] = None
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

    id: Annotated[
        str, Meta(description="The name that requests use.", examples=["all-MiniLM-L6-v2"])
    ]
    layer: Annotated[int, Meta(description="The layer that token embeddings are taken from.")]
    precision: Annotated[str, Meta(description="The compute precision.", examples=["fp32"])]
    provider: Annotated[
        str, Meta(description="The execution provider.", examples=["CPUExecutionProvider"])
    ]
    signature: _Signature
    max_length: Annotated[
        int,
        Meta(
            description="The most tokens of a text; the signature says whether longer ones are "
            "truncated, or encoded in windows of that length.",
            examples=[512],
        ),
    ]
    rescale: Annotated[
        list[str], Meta(description="The languages to rescale for.", examples=[["en"]])
    ]
    idf: Annotated[list[str], Meta(description="The names of the idf tables.", examples=[["news"]])]


class ModelList(msgspec.Struct, frozen=True):
    """All served models."""

    models: Annotated[list[ModelInfo], Meta(description="In the order of the command line.")]


class Health(msgspec.Struct, frozen=True):
    """The state of the server."""

    status: Annotated[
        str, Meta(description="`live`, `ready`, `not live` or `not ready`.", examples=["ready"])
    ]
    reasons: Annotated[list[str], Meta(description="Why it is not; empty if it is.")] = []


# Decoding and checks.

T = TypeVar("T")
P = TypeVar("P", bound=PairBody)


def decode_score_body(content: bytes, max_pairs: int) -> ScoreBody:
    """Decode the body of `POST /v1/score`.

    The error is 400 if it is not JSON, and 422 if it is something else or has too many pairs.
    """
    envelope = _convert(_parse(content), ScoreEnvelope[msgspec.Raw])
    pairs: list[PairBody] = []
    total = 0
    for position, raw in enumerate(envelope.pairs):
        pairs.append(_checked(_convert(raw, PairBody, position), max_pairs, position))
        total += len(pairs[-1].all_references)
        if total > max_pairs:
            raise _too_many(max_pairs, None)
    return ScoreBody(pairs, envelope.model, envelope.rescale, envelope.idf)


def decode_match_body(content: bytes, max_pairs: int) -> MatchBody:
    """Decode the body of `POST /v1/match`.

    Its errors are those of `decode_score_body`.
    """
    return _checked(_convert(_parse(content), MatchBody), max_pairs)


def to_pairs(bodies: Sequence[PairBody]) -> Pairs:
    """Return decoded pairs in the form that a scorer takes."""
    references = [pair.all_references for pair in bodies]
    counts = np.array(list(map(len, references)), dtype=np.int64)
    texts: list[Text] = []
    candidates: list[Text] = []
    for pair, group in zip(bodies, references, strict=True):
        candidates += in_context([pair.candidate], pair.context, "context")
        texts += in_context(group, pair.context, "context")
    return Pairs(singles(candidates), Side(texts, counts))


def check_tokens(tokens: int, max_tokens: int, position: int) -> None:
    """Raise 422 if a candidate and its references have too many tokens."""
    if tokens > max_tokens:
        raise ApiError(
            422,
            "too_long",
            f"The candidate and its references have {tokens:,} tokens together; at most "
            f"{max_tokens:,} are scored. Give fewer or shorter references.",
            pair=position,
        )


def _parse(content: bytes) -> msgspec.Raw:
    """Check that a text is JSON to its end, before any type is checked.

    No key may occur twice in an object.
    """
    try:
        content.decode()
        raw = msgspec.json.decode(content, type=msgspec.Raw)
        json.loads(
            content, object_pairs_hook=lambda pairs: unique_keys(pairs, "The body"), parse_int=str
        )
        return raw
    except InputError as error:
        raise ApiError(422, "invalid", str(error)) from error
    except UnicodeDecodeError as error:
        raise _malformed(f"The byte at offset {error.start} is not UTF-8.") from error
    except RecursionError as error:
        raise _malformed("It is nested too deeply.") from error
    except msgspec.DecodeError as error:
        raise _malformed(f"{json_fault(error, 'It')}.") from error


def _convert(raw: msgspec.Raw, form: type[T], position: int | None = None) -> T:
    try:
        return msgspec.json.decode(raw, type=form)
    except msgspec.ValidationError as error:
        root = "The pair" if form is PairBody else "The body"
        raise ApiError(
            422, "invalid", f"{json_fault(error, root)}. {_expected(form)}", pair=position
        ) from error


def _names_of_fields(form: Any) -> str:
    return ", ".join(f"`{field.encode_name}`" for field in msgspec.structs.fields(form))


def _expected(form: Any) -> str:
    fields = _names_of_fields(form)
    if "`pairs`" in fields:
        fields += f". The fields of a pair are {_names_of_fields(PairBody)}"
    return f"The fields are {fields}."


def _checked(pair: P, max_pairs: int, position: int | None = None) -> P:
    """Return a pair, after checks that its struct does not express."""
    if (pair.reference is None) == (pair.references is None):
        raise ApiError(
            422, "invalid", "A pair needs either `reference` or `references`.", pair=position
        )
    if len(pair.all_references) > max_pairs:
        raise _too_many(max_pairs, position)
    return pair


def _malformed(reason: str) -> ApiError:
    return ApiError(400, "malformed_json", f"The body is not JSON. {reason}")


def _too_many(max_pairs: int, position: int | None) -> ApiError:
    return ApiError(
        422,
        "too_many_pairs",
        f"There are more than the {max_pairs:,} pairs of a candidate and a reference that are "
        "allowed. Send fewer at a time.",
        pair=position,
    )
