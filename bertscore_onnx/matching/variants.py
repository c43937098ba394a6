"""Variants of BERTScore.

A `Matching` says which tokens of a pair are matched, and what F is made of; `PRESETS` has the
published ones. The sources of the presets:

- CodeBERTScore: Zhou et al., "CodeBERTScore", EMNLP 2023, and its repository at 44106b5.
- Doc-BERTScore: Vernikos et al., "Embarrassingly Easy Document-Level MT Metrics", WMT 2022.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args
from urllib.parse import quote, unquote

from bertscore_onnx.errors import InputError, InputTypeError, meant

Excluded = Literal["special", "punctuation", "ascii-punctuation", "code-punctuation", "subwords"]
ContextRole = Literal["excluded", "weightless"]

SEPARATOR_FIELD = "{sep}"
"""The placeholder of the model's own separator token in `Matching.separator`."""

MAX_BETA = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How the tokens of a candidate and a reference are matched.

    The default is the BERTScore of the paper. Two values are equal if they match alike. `str()`
    returns the spec that a signature prints, and `parse` reads it.

    Raises:
        InputError: a field is out of its range, or conflicts with another one.
        InputTypeError: a field is of another type.
    """

    exclude: tuple[Excluded, ...] = ()
    """Kinds of tokens that are encoded and not matched.

    "special" are those around a text; "punctuation", "ascii-punctuation", or "code-punctuation"
    without the operators `+-*/&|~`; "subwords" are the tokens that continue a word.
    """

    words: tuple[str, ...] = ()
    """Words that are not matched either, in lower case, upper case, or with a capital."""

    context: ContextRole = "excluded"
    """The role of a context.

    It is "excluded" from matching, or "weightless": tokens of the text may match its tokens, which
    have no weight of their own.
    """

    separator: str = " "
    """The string between a context and its text, and between its sentences.

    `{sep}` is the model's own separator token.
    """

    beta: float = 1.0
    """The weight of recall in F: (1 + β²) P R / (β² P + R)."""

    def __post_init__(self) -> None:
        """Check the fields.

        Lists become tuples, sorted and without duplicates: neither matters in them.
        """
        _check_choice("context", self.context, ContextRole)
        for name in ("exclude", "words"):
            strings = _strings(name, getattr(self, name))
            object.__setattr__(self, name, tuple(sorted(set(strings))))
        for excluded in self.exclude:
            _check_choice("exclude", excluded, Excluded)
        if not isinstance(self.separator, str):
            raise InputTypeError(
                f"separator is {self.separator!r}; expected a text, such as a space.",
            )
        if isinstance(self.beta, bool) or not isinstance(self.beta, int | float):
            raise InputTypeError(f"beta is {self.beta!r}; expected a number.")
        if not 0 < self.beta <= MAX_BETA:
            expected = f"a number above 0, to {MAX_BETA:,}, such as 1 for F1"
            raise InputError(f"beta is {self.beta!r}; expected {expected}.")
        object.__setattr__(self, "beta", float(self.beta))

    @classmethod
    def parse(
        cls,
        spec: str,
        read_lines: Callable[[str], Sequence[str]] | None = None,
    ) -> "Matching":
        """Return the matching that a spec describes.

        Specs are such as `code-bert-score,beta=3` or `exclude=special+subwords`. A spec may begin
        with a preset; commas separate it from its fields, `name=value`. `+` joins several values,
        and the separator is percent-encoded, as in a URL. `parse` reads what `str()` returns,
        except for words, which `str()` shows as a digest.

        Args:
            spec: the matching, as a signature prints it.
            read_lines: returns the lines of a file, for `words=FILE`, as on the command line;
                without it no spec may name a file.

        Raises:
            InputError: the spec is malformed, or a value is out of its range.
        """
        if spec.endswith("+context"):
            raise InputError(
                f"{spec!r} ends with +context: the texts of that signature had contexts. "
                "Leave it out, and give the contexts with the texts."
            )
        items = spec.split(",")
        base = PRESETS.get(items[0].strip())
        if base is not None:
            del items[0]
        changes: dict[str, Any] = {}
        for item in items:
            name, value = _field(item)
            if name in changes:
                raise InputError(
                    f"{spec!r} has {name} twice; give it once, with + between several values.",
                )
            changes[name] = _value(name, value, read_lines)
        return replace(base or _DEFAULT, **changes)

    @property
    def is_default(self) -> bool:
        """Whether this is the BERTScore of the paper, for texts without a context."""
        return self == _DEFAULT

    def __str__(self) -> str:
        """Return the shortest spec.

        It is a preset and the fields that differ from it, or the fields alone.
        """
        specs = []
        for name, preset in PRESETS.items():
            items = []
            for field in fields(self):
                value = getattr(self, field.name)
                if value != getattr(preset, field.name):
                    items.append(_item(field.name, value))
            # Fields that differ from the default need no name in front of them.
            if not items or preset is not _DEFAULT:
                items.insert(0, name)
            specs.append(",".join(items))
        return min(specs, key=lambda spec: spec.count(","))


def _strings(name: str, values: Any) -> list[str]:
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InputTypeError(f"{name} is {values!r}; expected a list or a tuple.")
    listed = list(values)
    for value in listed:
        if not isinstance(value, str):
            raise InputTypeError(f"{name} has {value!r}; expected strings.")
    return listed


def _check_choice(name: str, value: object, choice: Any) -> None:
    if value not in get_args(choice):
        known = ", ".join(f'"{known}"' for known in get_args(choice))
        raise InputError(f"{name} is {value!r}; expected {known}.")


# Specs: `_item` writes a field; `_field` splits it into its name and its text, and `_value` reads
# the text.


def _item(name: str, value: Any) -> str:
    """Return a field as it stands in a spec; a list of words is a digest."""
    if name == "words":
        text = hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]
    elif name == "exclude":
        text = "+".join(value) or "none"
    elif name == "separator":
        text = quote(value, "{}", errors="surrogatepass")
    else:
        text = str(value).lower().removesuffix(".0")
    return f"{name}={text}"


def _field(item: str) -> tuple[str, str]:
    name, equals, text = item.partition("=")
    name = name.strip()
    known = [field.name for field in fields(Matching)]
    if not equals or name not in known:
        raise InputError(
            f"{item!r} is not a preset ({', '.join(PRESETS)}; these come first) or FIELD=VALUE, "
            f"with + between several values. The fields are {', '.join(known)}."
            f"{meant(name, [*PRESETS, *known])}"
        )
    return name, text


def _value(name: str, text: str, read_lines: Callable[[str], Sequence[str]] | None) -> Any:
    """Return the value of a field.

    What cannot be read stays a text, which `Matching` refuses.
    """
    stripped = text.strip()
    if name == "words":
        if read_lines is None:
            raise InputError(
                f"words={stripped} names a file, or the digest of a list, and only the command "
                "line reads files. Give the list itself: Matching(words=[...]), or "
                "dataclasses.replace(matching, words=[...])."
            )
        lines = [line.strip() for line in read_lines(stripped)]
        return list(filter(None, lines))
    if name == "exclude":
        return [] if stripped == "none" else stripped.split("+")
    try:
        if name == "separator":
            return unquote(text, errors="surrogatepass")
        if name == "beta":
            return float(stripped)
    except ValueError:
        return text
    return stripped


_DEFAULT = Matching()

PRESETS: Mapping[str, Matching] = {
    "bertscore": _DEFAULT,
    "code-bert-score": Matching(exclude=("code-punctuation",), separator=" \n"),
    "doc-bert-score": Matching(context="weightless", separator=f" {SEPARATOR_FIELD} "),
}
"""The published variants of BERTScore, by name."""


def checked_matching(matching: object) -> Matching:
    """Return a matching, given as one or as a spec."""
    if isinstance(matching, str):
        return Matching.parse(matching)
    if not isinstance(matching, Matching):
        raise InputTypeError(
            f'matching is {matching!r}; expected a Matching, or a spec such as "code-bert-score".',
        )
    return matching
