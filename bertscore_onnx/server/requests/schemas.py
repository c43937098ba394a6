"""The JSON bodies of requests and answers."""

from typing import Annotated, Generic, TypeVar

import msgspec

P = TypeVar("P")


class PairBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A candidate and its reference, or several of which the best counts."""

    candidate: str
    reference: str | None = None
    references: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None

    @property
    def all_references(self) -> list[str]:
        """The references, whichever way they were given."""
        return self.references or [self.reference or ""]


class ScoreEnvelope(msgspec.Struct, Generic[P], frozen=True, forbid_unknown_fields=True):
    """Pairs, decoded or not yet, and how to score them."""

    pairs: list[P]
    model: str | None = None
    """A served model; may be left out where there is only one."""

    rescale: str | bool | None = None
    """The language whose baseline to rescale with; false or null for raw scores."""

    idf: str | None = None
    """The idf table to weigh tokens with; null for none."""


class ScoreBody(ScoreEnvelope[PairBody], frozen=True, forbid_unknown_fields=True):
    """What `POST /v1/score` takes as JSON."""


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
