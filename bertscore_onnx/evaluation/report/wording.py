"""The words and numbers of the report: verdicts, scores with as many digits as their metric has, and safe texts."""

import math
import unicodedata
from dataclasses import dataclass
from typing import Literal

from bertscore_onnx.evaluation.comparison import SIGNIFICANT, Comparison, MetricResult, SystemResult, Test
from bertscore_onnx.evaluation.tables import count, plural

# Numbers, with a true minus sign.


def score(value: float, metric: MetricResult) -> str:
    """Return a score of this metric, or the half-width of an interval of them."""
    return fixed(value, metric.digits)


def signed(value: float, metric: MetricResult) -> str:
    """Return a difference of two scores, with its sign unless it is rounded to zero."""
    text = score(value, metric)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def fixed(value: float, decimals: int) -> str:
    """Return a number with this many decimals, and no sign if it is rounded to zero."""
    text = f"{value:.{decimals}f}"
    if not text.strip("-0."):
        return text.lstrip("-")
    return text.replace("-", "\N{MINUS SIGN}")


def p_value(p: float) -> str:
    """Return a p-value with four decimals, or a bound where they are all zero."""
    return "< 0.0001" if p < 0.00005 else f"{p:.4f}"


def equals(p: float) -> str:
    """Return a p-value as it stands in a sentence, after "p"."""
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def percent(share: float) -> str:
    """Return a share of 1 in percent."""
    return f"{100 * share:.1f} %"


# Texts of users, made fit for a page: invisible characters become visible, and long texts are cut.


MAX_CHARACTERS = 2000
"""Of a text that is shown; the report states how many more there are."""

FIRST_STRONG_ISOLATE, POP_ISOLATE = "\u2068", "\u2069"


def visible(text: str) -> str:
    """Return a text in which control characters have a picture, and invalid ones are U+FFFD.

    Line breaks and tabs stay. A page cannot hold the other control characters, nor UTF-8 half a surrogate pair.
    """
    return "".join(_visible_character(one) for one in text) if not text.isprintable() else text


def shortened(text: str) -> str:
    """Return the first `MAX_CHARACTERS` of a text, and how many are left out."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]} … ({len(text) - MAX_CHARACTERS:,} more characters)"


def isolated(name: str) -> str:
    """Return a name that leaves the direction of the sentence around it as it is, also where it runs right to left."""
    shown = visible(name)
    return shown if shown.isascii() else f"{FIRST_STRONG_ISOLATE}{shown}{POP_ISOLATE}"


def _visible_character(character: str) -> str:
    code = ord(character)
    if character in "\n\t":
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in ("Cc", "Cs") else character


TESTS: dict[Test, tuple[str, str]] = {
    "bs": ("paired bootstrap", "resamples"),
    "ar": ("approximate randomization", "swaps"),
}
"""The name of a test, and of its draws."""

FEW_SEGMENTS = 30
"""With fewer segments the report warns."""

Outcome = Literal["better", "worse", "unclear", "same"]
"""Of a system against the baseline; `unclear` if luck may explain the difference."""

LABELS: dict[Outcome, str] = {"better": "better", "worse": "worse", "unclear": "may be luck", "same": "no difference"}
SYMBOLS: dict[Outcome, str] = {"better": "▲", "worse": "▼", "unclear": "≈", "same": "="}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One system against the baseline."""

    name: Outcome
    sentence: str
    """Follows the system's name, and holds the baseline's."""
    segments: str
    """On how many segments the system is better."""

    @property
    def label(self) -> str:
        """The verdict in two words."""
        return LABELS[self.name]

    @property
    def symbol(self) -> str:
        """The verdict in one character."""
        return SYMBOLS[self.name]


def verdict(metric: MetricResult, system: SystemResult) -> Verdict | None:
    """Put the comparison of a system with the baseline into words; None for the baseline itself.

    If all pairs were compared, p after Holm's correction decides.
    """
    if system.delta is None or system.p is None:
        return None
    baseline, segments = isolated(metric.systems[0].name), _segments(system)
    if system.delta == 0:
        return Verdict("same", f"has the same score as {baseline}.", segments)
    corrected = corrected_p(metric, system)
    amount, p = score(abs(system.delta), metric), f"p {equals(system.p)}"
    if corrected is not None:
        p += f" ({p_value(corrected)} with Holm’s correction)"
    found = verdict_of(metric, system.delta, system.p if corrected is None else corrected)
    if found == "unclear":
        direction = "higher" if system.delta > 0 else "lower"
        return Verdict(found, f"scores {direction} than {baseline} by {amount}, {p}: this may be luck.", segments)
    return Verdict(found, f"is {found} than {baseline} by {amount}, {p}: unlikely to be luck.", segments)


def verdict_of(metric: MetricResult, delta: float, p: float) -> Outcome:
    """Judge a system whose score is higher than another's by `delta`; one segment alone is always unclear."""
    if delta == 0:
        return "same"
    if p >= SIGNIFICANT or metric.segment_scores.shape[1] == 1:
        return "unclear"
    return "better" if (delta < 0) == metric.lower_is_better else "worse"


def test_settings(comparison: Comparison) -> str:
    """Return the test with its settings."""
    test, draws = TESTS[comparison.test]
    return f"{test}, {count(comparison.num_resamples)} {draws}, seed {comparison.seed}"


def warnings(comparison: Comparison) -> list[str]:
    """Return the reasons why the tests of a comparison are weaker than they seem."""
    found = []
    if (num_segments := len(comparison.references)) < FEW_SEGMENTS:
        found.append(
            f"Tested on {plural(num_segments, 'segment')} only. Results on so few say little about other texts."
        )
    num_pairs = max(len(metric.pairs) for metric in comparison.metrics)
    if num_pairs >= SIGNIFICANT * (comparison.num_resamples + 1):
        _, draws = TESTS[comparison.test]
        found.append(
            f"With {count(comparison.num_resamples)} {draws} no p can stay below {SIGNIFICANT} after Holm’s correction "
            f"for {count(num_pairs)} pairs. Draw {count(math.ceil(num_pairs / SIGNIFICANT))} or more."
        )
    return found


def corrected_p(metric: MetricResult, system: SystemResult) -> float | None:
    """Return p of a system against the baseline after Holm's correction; None where not all pairs were compared."""
    baseline = metric.systems[0].name
    for pair in metric.pairs:
        if {pair.baseline, pair.system} == {baseline, system.name}:
            return pair.p_holm
    return None


def _segments(system: SystemResult) -> str:
    """Return on how many segments the system is better."""
    won, lost, tied = system.won or 0, system.lost or 0, system.tied or 0
    if not won and not lost:
        return "Tied on every segment."
    return f"Better on {plural(won, 'segment')}, worse on {count(lost)}, tied on {count(tied)}."
