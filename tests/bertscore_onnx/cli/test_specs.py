"""Values of options that are written NAME=VALUE."""

import pytest
import typer

from bertscore_onnx.cli.specs import columns_of

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
    assert columns_of(specs, *ROLES).names == names


def test_scores_have_a_column_of_truncation_only_if_it_is_named():
    assert columns_of(["recall=r"], *ROLES).scores == ("precision", "r", "f1")
    assert columns_of(["truncated=cut"], *ROLES).scores == ("precision", "recall", "f1", "cut")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("mt", "'mt' is not of the form ROLE=NAME with one of the roles candidate, reference, lang_pair, precision"),
        ("context=c", "'context=c' is not of the form"),
        ("candidate=mt,label=c", "'label=c' is not of the form"),
        ("candidate=", "'candidate=' is not of the form"),
        ("candidate=a,candidate=b", "candidate is given 2 times; expected once"),
        ("reference=c++", r"reference=c\+\+ has an empty name. .* a single one twice"),
        ("f1=recall", "expected three different names"),
    ],
)
def test_what_names_no_column_is_refused(spec, message):
    with pytest.raises(typer.BadParameter, match=message):
        columns_of([spec], *ROLES)
