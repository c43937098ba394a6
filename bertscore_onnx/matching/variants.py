"""`Matching`: which tokens of a pair are matched, how, and what the score is made of; and the published presets.

The sources of the presets:

- CodeBERTScore: Zhou et al., "CodeBERTScore", EMNLP 2023, and its repository at 44106b5.
- Doc-BERTScore: Vernikos et al., "Embarrassingly Easy Document-Level MT Metrics", WMT 2022.
- MoverScore: Zhao et al., "MoverScore", EMNLP 2019, and its repository at 0459a3b.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, Literal, get_args
from urllib.parse import quote, unquote

from bertscore_onnx.errors import InputError, InputTypeError, meant
from bertscore_onnx.text.texts import check_many

Method = Literal["greedy", "assignment", "transport"]
Excluded = Literal["special", "punctuation", "ascii-punctuation", "code-punctuation", "subwords"]
ContextRole = Literal["excluded", "weightless"]
Pool = Literal["mean", "p-means"]
Cost = Literal["cosine", "euclidean", "squared"]

SEPARATOR_FIELD = "{sep}"
"""The placeholder of the model's own separator token in `Matching.separator`."""

MAX_BETA = 1000
MAX_NGRAM = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How the tokens of a candidate and a reference are matched; the default is the BERTScore of the paper.

    Two values are equal if they match alike. `str()` returns the spec that a signature prints, and `parse` reads it.

    Raises:
        InputError: a field is out of its range, or conflicts with another one.
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
    """The role of a context: "excluded" from matching, or "weightless": tokens of the text may match its tokens, which
    have no weight of their own."""

    separator: str = " "
    """The string between a context and its text, and between the sentences of a context; `{sep}` is the model's own
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
        """Check the fields; lists become tuples, sorted and without duplicates where neither matters."""
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
            object.__setattr__(self, "center", tuple(_many("center", check_many(self.center, "center"), str)))
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
        object.__setattr__(self, "beta", float(self.beta))
        if not 1 <= self.ngram <= MAX_NGRAM:
            raise InputError(f"ngram is {self.ngram}; expected 1 to {MAX_NGRAM} tokens.")
        if self.center == ():
            raise InputError("center has no sentence; expected at least one.")
        if self.method != "transport" and (self.cost, self.inverse, self.ngram) != ("cosine", False, 1):
            raise InputError('cost, inverse and ngram belong to transport; give method="transport" too.')
        if self.pool != "mean" and not self.layers:
            raise InputError("pool combines layers; give layers too.")

    @classmethod
    def parse(cls, spec: str, read_lines: Callable[[str], Sequence[str]] | None = None) -> "Matching":
        """Return the matching that a spec describes, such as `code-bert-score,beta=3` or `transport,exclude=special`.

        A spec begins with a preset, with a method, or with neither; commas separate it from its fields, `name=value`.
        `+` joins several values, `8..12` is a range of layers, a field that is True needs no value, and the separator
        is percent-encoded, as in a URL. `parse` reads what `str()` returns, except for words and sentences, which
        `str()` shows as digests.

        Args:
            spec: the matching, as a signature prints it.
            read_lines: returns the lines of a file, for `words=FILE` and `center=FILE`, as on the command line; without
                it no spec may name a file.

        Raises:
            InputError: the spec is malformed, or a value is out of its range.
        """
        if spec.endswith("+context"):
            raise InputError(
                f"{spec!r} ends with +context: the texts of that signature had contexts. Leave it out, and give the "
                "contexts with the texts."
            )
        first, *others = items = spec.split(",")
        base = PRESETS.get(first.strip())
        changes: dict[str, Any] = {}
        for item in items if base is None else others:
            name, value = _field(item)
            if name in changes:
                raise InputError(f"{spec!r} has {name} twice; give it once, with + between several values.")
            changes[name] = _value(name, value, read_lines)
        return replace(base or _DEFAULT, **changes)

    @property
    def is_default(self) -> bool:
        """Whether this is the BERTScore of the paper, for texts without a context."""
        return self == _DEFAULT

    @property
    def is_optimal(self) -> bool:
        """Whether all tokens of a pair are matched at once, in a time that grows fast, so that lengths are bounded."""
        return self.method != "greedy"

    def __str__(self) -> str:
        """Return the shortest spec: a preset and the fields that differ from it, or the fields alone."""
        specs = []
        for name, preset in PRESETS.items():
            values = {field.name: getattr(self, field.name) for field in fields(self)}
            changes = [_item(field, value) for field, value in values.items() if value != getattr(preset, field)]
            specs.append(",".join(changes if changes and preset is _DEFAULT else [name, *changes]))
        return min(specs, key=lambda spec: spec.count(","))


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


# Specs: `_item` writes a field; `_field` splits it into its name and its text, and `_value` reads the text.

_FLAGS = ("inverse", "weigh_special")
_RANGE = re.compile(r"(-?\d{1,4})(?:\.\.(-?\d{1,4}))?")


def _item(name: str, value: Any) -> str:
    """Return a field as it stands in a spec; lists of words and sentences are digests."""
    if name == "method" or value is True:
        return str(value) if name == "method" else name
    if name in ("words", "center") and value != "references":
        text = hashlib.sha256("\0".join(value).encode(errors="surrogatepass")).hexdigest()[:12]
    elif isinstance(value, tuple):
        text = "+".join(_ranges(value) if name == "layers" else value) or "none"
    elif name == "separator":
        text = quote(value, "{}", errors="surrogatepass")
    else:
        text = str(value).lower().removesuffix(".0")
    return f"{name}={text}"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Yield sorted integers as numbers and ranges."""
    for _, run in groupby(enumerate(numbers), lambda numbered: numbered[1] - numbered[0]):
        layers = [number for _, number in run]
        yield f"{layers[0]}..{layers[-1]}" if len(layers) > 1 else str(layers[0])


def _field(item: str) -> tuple[str, str]:
    name, equals, text = item.partition("=")
    name, known = name.strip(), [field.name for field in fields(Matching)]
    if not equals and name in get_args(Method):
        return "method", name
    if name not in (known if equals else _FLAGS):
        raise InputError(
            f"{item!r} is not a preset ({', '.join(PRESETS)}; these come first), a method "
            f"({', '.join(get_args(Method))}) or FIELD=VALUE, with + between several values. The fields are "
            f"{', '.join(known)}.{meant(name, [*PRESETS, *get_args(Method), *known])}"
        )
    return name, text if equals else "true"


def _value(name: str, text: str, read_lines: Callable[[str], Sequence[str]] | None) -> Any:
    """Return the value of a field; what cannot be read stays a text, which `Matching` refuses."""
    stripped = text.strip()
    if name == "words" or (name == "center" and stripped != "references"):
        if read_lines is None:
            raise InputError(
                f"{name}={stripped} names a file, or the digest of a list, and only the command line reads files. Give "
                f"the list itself: Matching({name}=[...]), or dataclasses.replace(matching, {name}=[...])."
            )
        return [line.strip() if name == "words" else line for line in read_lines(stripped) if line.strip()]
    if name in ("exclude", "layers"):
        return [] if stripped == "none" else stripped.split("+") if name == "exclude" else _layers(stripped)
    if name in _FLAGS:
        return {"true": True, "false": False}.get(stripped, stripped)
    try:
        if name == "separator":
            return unquote(text, errors="surrogatepass")
        return float(stripped) if name == "beta" else int(stripped) if name == "ngram" else stripped
    except ValueError:
        return text


def _layers(text: str) -> list[int]:
    """Return the layers of numbers and ranges, such as 8..12, 1+3 or -5..-1."""
    layers: list[int] = []
    for part in text.split("+"):
        found = _RANGE.fullmatch(part.strip())
        numbers = range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)
        if not numbers:
            raise InputError(f"layers is {text!r}; expected numbers and ranges, such as 8..12, 1+3 or -5..-1.")
        layers += numbers
    return layers


_DEFAULT = Matching()

_MOVER_EXCLUDES: tuple[Excluded, ...] = ("ascii-punctuation", "subwords")

PRESETS: Mapping[str, Matching] = {
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
"""The published variants of BERTScore, by name."""


def checked_matching(matching: object) -> Matching:
    """Return a matching, given as one or as a spec."""
    if isinstance(matching, str):
        return Matching.parse(matching)
    if not isinstance(matching, Matching):
        raise InputTypeError(f'matching is {matching!r}; expected a Matching, or a spec such as "code-bert-score".')
    return matching
