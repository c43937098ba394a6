"""The bodies of requests: their schemas, which the OpenAPI document shows, and how they are decoded and checked."""

from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from bertscore_onnx.errors import json_fault
from bertscore_onnx.scoring.inputs import Pairs, Texts, singles
from bertscore_onnx.text.texts import Text, in_context
from bertscore_onnx_service.http.errors import ApiError

_ModelName = Annotated[str | None, Meta(description="A served model; may be left out where there is only one.")]
_Rescale = Annotated[
    str | bool | None,
    Meta(
        description="The language whose baseline to rescale with, one of the model's `rescale`; false or null for raw "
        "scores. The similarities of tokens stay as they are.",
        examples=["en"],
    ),
]
_Idf = Annotated[
    str | None, Meta(description="The idf table to weigh tokens with, one of the model's `idf`; null for none.")
]
B = TypeVar("B")


class PairBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate and its reference, or several of which the best counts: `reference` or `references`, not both."""

    candidate: Annotated[str, Meta(description="The text to score.")]
    reference: Annotated[str | None, Meta(description="The one text to compare it with.")] = None
    references: Annotated[
        Annotated[list[str], Meta(min_length=1)] | None,
        Meta(description="The texts to compare it with, of which the one with the best F1 counts."),
    ] = None

    context: Annotated[
        str | list[str] | None,
        Meta(
            description="The context of both texts, encoded but not matched, or matched without weight: a text, or "
            "a list of sentences."
        ),
    ] = None
    reference_context: Annotated[
        str | list[str] | None, Meta(description="A different context for the references.")
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
    html: Annotated[bool, Meta(description="Whether to return the matches as HTML, not as numbers.")] = False

    @property
    def pairs(self) -> list[PairBody]:
        """The pair, as `ScoreBody` has its pairs."""
        return [self]


T = TypeVar("T")
P = TypeVar("P", bound=PairBody)


def decode_score_body(content: bytes, max_pairs: int) -> ScoreBody:
    """Decode the body of `POST /v1/score`; 400 if it is not JSON, 422 if it is something else or has too many pairs."""
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
    """Decode the body of `POST /v1/match`, with the errors of `decode_score_body`."""
    return _checked(_convert(_parse(content), MatchBody), max_pairs)


def to_pairs(bodies: Sequence[PairBody]) -> Pairs:
    """Return decoded pairs in the form that a scorer takes."""
    references = [pair.all_references for pair in bodies]
    counts = np.array([*map(len, references)], dtype=np.int64)
    texts: list[Text] = []
    candidates: list[Text] = []
    for pair, group in zip(bodies, references, strict=True):
        context = pair.context if pair.reference_context is None else pair.reference_context
        candidates += in_context([pair.candidate], pair.context, "context")
        texts += in_context(group, context, "reference_context")
    return Pairs(singles(candidates), Texts(texts, counts))


def check_tokens(tokens: int, max_tokens: int, position: int) -> None:
    """Raise 422 if a candidate and its references have too many tokens."""
    if tokens > max_tokens:
        raise ApiError(
            422,
            "too_long",
            f"The candidate and its references have {tokens:,} tokens together; at most {max_tokens:,} are scored. "
            "Give fewer or shorter references.",
            pair=position,
        )


def _parse(content: bytes) -> msgspec.Raw:
    """Check that a text is JSON to its end, so that this is reported rather than a wrong type before."""
    try:
        content.decode()
        return msgspec.json.decode(content, type=msgspec.Raw)
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
        raise ApiError(422, "invalid", f"{json_fault(error, root)}. {_expected(form)}", pair=position) from error


def _listed(form: Any) -> str:
    return ", ".join(f"`{field.encode_name}`" for field in msgspec.structs.fields(form))


def _expected(form: Any) -> str:
    fields = _listed(form)
    pairs = f". The fields of a pair are {_listed(PairBody)}" if "`pairs`" in fields else ""
    return f"The fields are {fields}{pairs}."


def _checked(pair: P, max_pairs: int, position: int | None = None) -> P:
    """Return a pair, after checks that its struct does not express."""
    if (pair.reference is None) == (pair.references is None):
        raise ApiError(422, "invalid", "A pair needs either `reference` or `references`.", pair=position)
    if pair.reference_context is not None and pair.context is None:
        raise ApiError(422, "invalid", "A pair has `reference_context` without `context`; give both.", pair=position)
    if len(pair.all_references) > max_pairs:
        raise _too_many(max_pairs, position)
    return pair


def _malformed(reason: str) -> ApiError:
    return ApiError(400, "malformed_json", f"The body is not JSON. {reason}")


def _too_many(max_pairs: int, position: int | None) -> ApiError:
    return ApiError(
        422,
        "too_many_pairs",
        f"There are more than the {max_pairs:,} pairs of a candidate and a reference that are allowed. Send fewer at a "
        "time.",
        pair=position,
    )
