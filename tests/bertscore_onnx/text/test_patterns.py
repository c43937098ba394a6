"""Patterns of published tokenizers take few steps; calls, back references and exponential searches
are refused.
"""

import re

import pytest

from bertscore_onnx.text.budget import MAX_STEPS
from bertscore_onnx.text.patterns import Pattern

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| "
    r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDING = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDING}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDING}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| "
    r"?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LINEAR = [
    GPT2,
    GPT4,
    GPT4O,
    GPT4O.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]"),
    DEEPSEEK,
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    r'[!"\#\$%\&\'\(\)\*\+,\-\.:;=\?@\[\\\]\^_`\{\|\}\~]',
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    " {2,}",
    r"\s+",
    r"[[:alpha:]]+|\w+(?:'\w+)?",
    r"(?<!\S)x|(?<=\p{N})(?=\p{L})",
    r"(?i)the|[a-z]++",
]
GROUPS_OF_DIGITS = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))"
QUADRATIC = [
    GROUPS_OF_DIGITS,
    r"\d{1,3}(?=(?:\d{3})*\b)",
    r"\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"\s+$",
    "(?=.*x)",
    r"\[[^\]]+\]",
    r"\s*y|\s|\s+",
]


def most_steps(source, length):
    return Pattern(source).steps(length, lambda _: length)


@pytest.mark.parametrize("source", LINEAR)
def test_patterns_of_published_tokenizers_take_few_steps(source):
    assert most_steps(source, 1_000_000) <= MAX_STEPS / 3


@pytest.mark.parametrize("source", QUADRATIC)
def test_a_search_that_starts_again_takes_steps_for_what_it_has_passed(source):
    assert most_steps(source, 1_000) <= MAX_STEPS / 10
    assert most_steps(source, 1_000_000) > MAX_STEPS * 100
    # runs of five characters, as in usual texts
    assert Pattern(source).steps(1_000_000, lambda _: 5) <= MAX_STEPS


@pytest.mark.parametrize(
    "source",
    ["a*a*b", r"\s*\s*y|\s|\s+", "(?:a|a)" * 30 + "b", "a?" * 30 + "b", "a{0,999}" * 3 + "b"],
)
def test_combinations_take_more_steps_than_a_short_text_may(source):
    assert most_steps(source, 1_000) > MAX_STEPS


def test_a_repeat_is_free_if_a_later_alternative_keeps_what_it_passed():
    assert most_steps(r"\s*y|\s+", 1000) == 4_000
    assert most_steps(r"\s*y|\s+z", 1000) > 1_000_000
    assert most_steps(r"\s*y|\s+?", 1000) > 1_000_000
    assert most_steps(r"x\s*y|\s+", 1000) > 1_000_000


CALLS = [r"(a)\1", r"(?<x>a)\k<x>", r"(?<x>a\g<x>?)", "(?R)", "(?1)(a)", "(a)(?(1)b|c)"]
UNUSUAL = [
    "(?~b)",
    "(?#x)a",
    "(?{x})",
    "(*FAIL)",
    "(?x) a",
    "a(?i)b",
    r"\X",
    r"\R",
    r"\K",
    r"\pL",
    "*a",
    "(?<=a+)b",
]
UNCLEAR_SETS = ["[[[a]]]", "[]a]", "[^]a]", "[[:foo:]]", r"[\ca]", "[a"]
EXPONENTIAL = [
    "(a+)+$",
    "(a|a)*b",
    r"(?:\w?x){20}",
    r"((\s*))+y",
    "(?:a?)*b",
    r"\p{N}{1,3}+",
    "(?:)*",
    "a**",
    "(?:^)+",
]
LONG = ["a{100000}", "((a{99}){99}){99}", "(?:ab{99}){99}{9}"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        *((source, "without calls, back references") for source in CALLS + UNUSUAL + UNCLEAR_SETS),
        *((source, "exponential") for source in EXPONENTIAL),
        *((source, "more than 10,000 parts") for source in LONG),
    ],
)
def test_other_patterns_are_refused(source, message):
    with pytest.raises(ValueError, match=f"its pattern .*{re.escape(message)}"):
        Pattern(source)


@pytest.mark.parametrize(
    ("source", "width"),
    [("a", 1), ("(?=a)", 0), ("ab|c{2}", 2), ("a?b*", 0), ("(?:ab){3}|^....", 4)],
)
def test_the_shortest_match(source, width):
    assert Pattern(source).width == width
