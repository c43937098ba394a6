"""Values of options that are written NAME=VALUE."""

import pytest

from bertscore_onnx.cli.specs import columns_of, dialect_of
from bertscore_onnx.tables.formats import Dialect

ROLES = ("candidate", "reference", "lang_pair", "precision", "recall", "f1", "truncated")


@pytest.mark.parametrize(
    ("specs", "names"),
    [
        (["candidate=mt", "reference=a+b"], {"candidate": ("mt",), "reference": ("a", "b")}),
        (["candidate=mt,reference=a+b"], {"candidate": ("mt",), "reference": ("a", "b")}),
        (["candidate=mt, reference=a"], {"candidate": ("mt",), "reference": ("a",)}),
        (["reference=a", "reference=b,c"], {"reference": ("a", "b,c")}),
        (["reference=a, b"], {"reference": ("a, b",)}),
        (["reference=a+b", "reference=c++"], {"reference": ("a+b", "c++")}),
        (["reference=c++", "reference=c++"], {"reference": ("c++",)}),
        (["candidate=c++"], {"candidate": ("c++",)}),
        (["candidate=x=y"], {"candidate": ("x=y",)}),
        (["candidate= mt "], {"candidate": (" mt ",)}),
        (["lang-pair=LP"], {"lang_pair": ("LP",)}),
        ([], {}),
    ],
)
def test_columns_are_named_by_their_roles(specs, names):
    assert columns_of(specs, *ROLES) == names


def test_scores_have_a_column_of_truncation_only_if_it_is_named():
    assert columns_of(["recall=r"], *ROLES).scores == ("precision", "r", "f1")
    assert columns_of(["truncated=cut"], *ROLES).scores == ("precision", "recall", "f1", "cut")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, Dialect()),
        ("jsonl", Dialect(format="jsonl")),
        ("csv,header=no", Dialect(has_header=False, format="csv")),
        ("tsv, quotes=no,header=yes", Dialect(has_quotes=False, format="tsv")),
        ("header=no,quotes=no", Dialect(has_header=False, has_quotes=False)),
        ("csv,delimiter=;", Dialect(delimiter=";", format="csv")),
        ("delimiter==", Dialect(delimiter="=")),
        ("delimiter=,,header=no", Dialect(has_header=False, delimiter=",")),
        ("delimiter=comma", Dialect(delimiter=",")),
        ("delimiter=semicolon", Dialect(delimiter=";")),
        ("delimiter=tab", Dialect(delimiter="\t")),
        ("delimiter=pipe", Dialect(delimiter="|")),
        ("delimiter=space", Dialect(delimiter=" ")),
    ],
)
def test_a_format_has_settings_after_it_or_settings_stand_alone(spec, expected):
    assert dialect_of(spec) == expected
