"""Values of options that are written NAME=VALUE, and hold the characters that separate them."""

import pytest

from bertscore_onnx.cli.specs import columns_of, dialect_of


@pytest.mark.parametrize(
    ("specs", "names"),
    [
        (["candidate=mt, reference=a, b"], {"candidate": ("mt",), "reference": ("a, b",)}),
        (["reference=a", "reference=b,c"], {"reference": ("a", "b,c")}),
        (["reference=c++", "reference=c++"], {"reference": ("c++",)}),
        (["candidate=x=y"], {"candidate": ("x=y",)}),
        (["candidate= mt "], {"candidate": (" mt ",)}),
        (["lang-pair=LP"], {"lang_pair": ("LP",)}),
    ],
)
def test_columns_are_named_by_their_roles(specs, names):
    assert columns_of(specs, "candidate", "reference", "lang_pair") == names


@pytest.mark.parametrize(
    ("name", "character"),
    [("comma", ","), ("semicolon", ";"), ("tab", "\t"), ("space", " "), ("=", "="), (",", ",")],
)
def test_a_delimiter_is_a_character_or_its_name(name, character):
    assert dialect_of(f"delimiter={name},header=no").delimiter == character
