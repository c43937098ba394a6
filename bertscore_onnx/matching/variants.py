"""`Matching`: which tokens of a pair are matched, how, and what the score is made of; and the published presets.

The sources of the presets:

- CodeBERTScore: Zhou et al., "CodeBERTScore", EMNLP 2023, and its repository at 44106b5.
- Doc-BERTScore: Vernikos et al., "Embarrassingly Easy Document-Level MT Metrics", WMT 2022.
- MoverScore: Zhao et al., "MoverScore", EMNLP 2019, and its repository at 0459a3b.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from bertscore_onnx.errors import InputError, InputTypeError

Method = Literal["greedy", "assignment", "transport"]
Excluded = Literal["special", "punctuation", "ascii-punctuation", "code-punctuation", "subwords"]
ContextRole = Literal["excluded", "weightless"]
Pool = Literal["mean", "p-means"]
Cost = Literal["cosine", "euclidean", "squared"]

SEPARATOR_FIELD = "{sep}"
"""What stands for the model's own separator token in `Matching.separator`."""


MAX_BETA = 1000
MAX_NGRAM = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How the tokens of a candidate and a reference are matched; the default is the BERTScore of the paper.

    Two values are equal if they match alike. `str()` names the matching in a signature.

    Raises:
        InputError: a field is out of its range, or does not go with another one.
        InputTypeError: a field is of another type.
    """

    method: Method = "greedy"
    """"greedy": each token with the most similar one of the other side (Zhang et al., section 3). "assignment": one to
    one, so that the sum of similarities is largest; a token without a partner counts 0. "transport": 1 − the earth
    mover's distance between the weighted tokens; P, R and F are equal then."""

    exclude: tuple[Excluded, ...] = ()
    """Kinds of tokens that are encoded and not matched: "special" for those around a text; "punctuation",
    "ascii-punctuation", or "code-punctuation" without the operators `+-*/&|~`; "subwords" for the tokens that continue
    a word."""

    words: tuple[str, ...] = ()
    """Words that are not matched either, in lower case, upper case, or with a capital."""

    context: ContextRole = "excluded"
    """The part of a context: "excluded" from matching, or "weightless": tokens of the text may match its tokens, which
    have no weight of their own."""

    separator: str = " "
    """What stands between a context and its text, and between the sentences of a context; `{sep}` is the model's own
    separator token."""

    beta: float = 1.0
    """The weight of recall in F: (1 + β²) P R / (β² P + R)."""

    layers: tuple[int, ...] = ()
    """Layers of a bundle of all layers whose vectors, of unit length, are pooled to one; negative ones count from the
    last, -1. Empty for the bundle's own layer."""

    pool: Pool = "mean"
    """"mean" over the layers; "p-means" for minimum, mean and maximum side by side (Zhao et al., section 3.2)."""

    center: Literal["references"] | tuple[str, ...] | None = None
    """Sentences whose mean token vector is subtracted from every vector; "references" for the references of each call.
    The difference is brought to unit length again."""

    cost: Cost = "cosine"
    """The cost of transport between two unit vectors: 1 − cosine, the Euclidean distance, or its square."""

    inverse: bool = False
    """Whether the score of transport is 1 / (1 + distance) instead of 1 − distance (MoverScore's second version)."""

    ngram: int = 1
    """The number of tokens in a row that transport moves as one: the weighted mean of their vectors."""

    weigh_special: bool = False
    """Whether the special tokens around a text weigh 1 without idf, as in MoverScore, and not 0."""

    def __post_init__(self) -> None:
        """Check the fields; lists become tuples, and what only orders or repeats is dropped."""
        choices: dict[str, Any] = {"method": Method, "context": ContextRole, "pool": Pool, "cost": Cost}
        for name, choice in choices.items():
            _check_choice(name, getattr(self, name), choice)
        for name, kind in (("exclude", str), ("words", str), ("layers", int)):
            object.__setattr__(self, name, tuple(sorted(set(_many(name, getattr(self, name), kind)))))
        for excluded in self.exclude:
            _check_choice("exclude", excluded, Excluded)
        if isinstance(self.center, str):
            _check_choice("center", self.center, Literal["references"])
        elif self.center is not None:
            object.__setattr__(self, "center", tuple(_many("center", self.center, str)))
        if not isinstance(self.separator, str):
            raise InputTypeError(f"separator is {self.separator!r}; expected a text, such as a space.")
        self._check_numbers()

    def _check_numbers(self) -> None:
        for name, kind in (("beta", int | float), ("ngram", int), ("inverse", bool), ("weigh_special", bool)):
            value = getattr(self, name)
            if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
                expected = "True or False" if kind is bool else "a number"
                raise InputTypeError(f"{name} is {value!r}; expected {expected}.")
        if not 0 < self.beta <= MAX_BETA:
            raise InputError(f"beta is {self.beta!r}; expected a number above 0, to {MAX_BETA:,}, such as 1 for F1.")
        if not 1 <= self.ngram <= MAX_NGRAM:
            raise InputError(f"ngram is {self.ngram}; expected 1 to {MAX_NGRAM} tokens.")
        if self.center == ():
            raise InputError("center has no sentence; expected at least one.")
        if self.method != "transport" and (self.cost, self.inverse, self.ngram) != ("cosine", False, 1):
            raise InputError('cost, inverse and ngram belong to transport; give method="transport" too.')

    @classmethod
    def named(cls, preset: str, **changes: Any) -> "Matching":
        """Return the matching of a published variant, perhaps with some fields changed.

        Args:
            preset: "bertscore", "code-bert-score", "doc-bert-score", "moverscore-1" or "moverscore-2".
            **changes: fields with other values, such as `beta=3`.

        Raises:
            InputError: there is no such preset, or a value is out of its range.
        """
        if not isinstance(preset, str) or preset not in PRESETS:
            raise InputError(f"There is no preset {preset!r}; expected {', '.join(PRESETS)}.")
        return replace(PRESETS[preset], **changes)

    @property
    def preset(self) -> str | None:
        """The name of the preset that matches alike; None if there is none."""
        return next((name for name, matching in PRESETS.items() if matching == self), None)

    @property
    def is_default(self) -> bool:
        """Whether this is the BERTScore of the paper, for texts without a context."""
        return self == _DEFAULT

    @property
    def is_optimal(self) -> bool:
        """Whether all tokens of a pair are matched at once, in a time that grows fast, so that lengths are bounded."""
        return self.method != "greedy"

    def __str__(self) -> str:
        """Return the name of the preset, or the fields that differ from the default."""
        if self.preset is not None:
            return self.preset
        changed = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return ",".join(f"{name}={_short(name, value)}" for name, value in changed if value != getattr(_DEFAULT, name))


def _many(name: str, values: Any, kind: type) -> list[Any]:
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InputTypeError(f"{name} is {values!r}; expected a list or a tuple.")
    listed = list(values)
    for value in listed:
        if not isinstance(value, kind):
            raise InputTypeError(f"{name} has {value!r}; expected {'integers' if kind is int else 'strings'}.")
    return listed


def _check_choice(name: str, value: object, choice: Any) -> None:
    if value not in get_args(choice):
        known = ", ".join(f'"{known}"' for known in get_args(choice))
        raise InputError(f"{name} is {value!r}; expected {known}.")


def _short(name: str, value: object) -> str:
    """Return a field for the signature; long lists of texts are digests."""
    if name in ("words", "center") and isinstance(value, tuple):
        return hashlib.sha256("\0".join(value).encode(errors="surrogatepass")).hexdigest()[:12]
    if isinstance(value, tuple):
        return "+".join(map(str, value))
    if name == "separator":  # a signature replaces these characters
        return ascii(value).replace(" ", "\\x20").replace("|", "\\x7c")
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


_DEFAULT = Matching()

_MOVER_EXCLUDES: tuple[Excluded, ...] = ("ascii-punctuation", "subwords")

PRESETS: Mapping[str, Matching] = MappingProxyType(
    {
        "bertscore": _DEFAULT,
        "code-bert-score": Matching(exclude=("code-punctuation",), separator=" \n"),
        "doc-bert-score": Matching(context="weightless", separator=f" {SEPARATOR_FIELD} "),
        "moverscore-1": Matching(
            method="transport",
            exclude=_MOVER_EXCLUDES,
            layers=(-5, -4, -3, -2, -1),
            pool="p-means",
            cost="squared",
            weigh_special=True,
        ),
        "moverscore-2": Matching(
            method="transport", exclude=_MOVER_EXCLUDES, cost="euclidean", inverse=True, weigh_special=True
        ),
    }
)
"""The published variants of BERTScore, by name."""


def checked_matching(matching: object) -> Matching:
    """Return a matching, given itself or the name of a preset."""
    if isinstance(matching, str):
        return Matching.named(matching)
    if not isinstance(matching, Matching):
        raise InputTypeError(f"matching is {matching!r}; expected a Matching, or the name of a preset.")
    return matching
