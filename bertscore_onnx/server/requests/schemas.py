"""The bodies of requests and answers, and how a request's body becomes pairs to score."""

from typing import Annotated, Any, TypeVar

import msgspec

from bertscore_onnx.server.requests.errors import ApiError
from bertscore_onnx.server.requests.strict_json import parse

T = TypeVar("T", bound=msgspec.Struct)


class PairBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate and its reference, or several of which the best counts."""

    candidate: str
    reference: str | None = None
    references: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None

    @property
    def all_references(self) -> list[str]:
        """The references, whichever way they were given."""
        return self.references or [self.reference or ""]


class ScoreBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `POST /v1/score` takes as JSON."""

    pairs: list[PairBody]
    model: str | None = None
    """A served model; may be left out where there is only one."""

    rescale: str | bool | None = None
    """The language whose baseline to rescale with; false or null for raw scores."""

    idf: str | None = None
    """The idf table to weigh tokens with; null for none."""


class MatchBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `POST /v1/match` takes."""

    candidate: str
    reference: str
    model: str | None = None
    """As in `ScoreBody`."""

    rescale: str | bool | None = None
    """As in `ScoreBody`; the similarities stay as they are."""


class ScoreValue(msgspec.Struct, frozen=True):
    """The score of one candidate."""

    precision: float
    recall: float
    f1: float
    best_reference: int
    """The position of the reference with the best F1; the first of equals."""


class ScoreAnswer(msgspec.Struct, frozen=True):
    """What `POST /v1/score` answers to JSON."""

    signature: str
    model: str
    scores: list[ScoreValue]


class StreamEnd(msgspec.Struct, frozen=True):
    """The last line of a stream that was scored to its end."""

    done: bool
    pairs: int
    """Lines that were scored."""

    errors: int
    """Lines that were answered with an error."""

    model: str
    signature: str


class MatchAnswer(msgspec.Struct, frozen=True):
    """What `POST /v1/match` answers: the similarity of every token with every other."""

    signature: str
    model: str
    score: ScoreValue
    candidate: list[str]
    """The tokens of the candidate, special tokens included."""

    reference: list[str]
    similarity: list[list[float]]
    """Cosine similarity, a row for each token of the candidate and a column for each of the reference."""

    candidate_weights: list[float]
    """What each token weighs in the score; 0 for special tokens."""

    reference_weights: list[float]


class ModelInfo(msgspec.Struct, frozen=True):
    """One served model."""

    id: str
    layer: int
    precision: str
    provider: str
    signature: str
    max_length: int | None
    """The most tokens of a text; null where the model has no bound."""

    rescale: list[str]
    """The languages to rescale for."""

    idf: list[str]
    """The idf tables."""


class ModelList(msgspec.Struct, frozen=True):
    """What `GET /v1/models` answers."""

    models: list[ModelInfo]


class Health(msgspec.Struct, frozen=True):
    """What `GET /health/…` answers."""

    status: str
    reasons: list[str] = []
    """Why the server is not ready."""


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `ScoreBody` whose pairs have not been looked at."""

    pairs: list[Any]
    model: str | None = None
    rescale: str | bool | None = None
    idf: str | None = None


def read_score_body(content: bytes, max_pairs: int) -> ScoreBody:
    """Read the body of `POST /v1/score`.

    Raises:
        ApiError: 400: it is not JSON; 422: it is not a `ScoreBody`, or has too many pairs.
    """
    envelope = convert(parse(content), _Envelope)
    pairs = []
    total = 0
    for position, value in enumerate(envelope.pairs):
        pairs.append(read_pair(value, max_pairs, position))
        total += len(pairs[-1].all_references)
        if total > max_pairs:
            raise _too_many(max_pairs, None)
    return ScoreBody(pairs, envelope.model, envelope.rescale, envelope.idf)


def read_pair(value: Any, max_pairs: int, position: int | None = None) -> PairBody:
    """Read one pair of a parsed body, or of a line of a stream, which has no position.

    Raises:
        ApiError: 422: it is not a `PairBody`, or has too many references.
    """
    pair = convert(value, PairBody, position)
    if (pair.reference is None) == (pair.references is None):
        raise ApiError(422, "invalid", "A pair needs either `reference` or `references`.", pair=position)
    if len(pair.all_references) > max_pairs:
        raise _too_many(max_pairs, position)
    return pair


def convert(value: Any, form: type[T], pair: int | None = None) -> T:
    """Take a parsed body as a struct.

    Raises:
        ApiError: 422: it is not one; says which field is wrong, and how.
    """
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise ApiError(422, "invalid", f"{error}.", pair=pair) from error


def _too_many(max_pairs: int, position: int | None) -> ApiError:
    return ApiError(
        422,
        "too_many_pairs",
        f"There are more than the {max_pairs:,} pairs of a candidate and a reference that are allowed. Send fewer at a "
        "time, or stream one candidate a line as application/x-ndjson.",
        pair=position,
    )
