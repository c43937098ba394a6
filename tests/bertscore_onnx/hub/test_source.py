import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.hub.source import Source, parse_source

COMMIT = "0123456789abcdef0123456789abcdef01234567"
VARIANT = "layer-17-slow-fp32"


@pytest.mark.parametrize("prefix", ["", "hf://"])
@pytest.mark.parametrize(
    ("text", "revision", "variant"),
    [
        ("org/repo", None, None),
        ("org/repo/", None, None),
        ("org/repo@v1", "v1", None),
        (f"org/repo/{VARIANT}", None, VARIANT),
        ("org/repo/some/folder", None, "some/folder"),
        (f"org/repo@{COMMIT}/{VARIANT}", COMMIT, VARIANT),
        ("org/repo@refs/pr/1", "refs/pr/1", None),
        (f"org/repo@refs/pr/1/{VARIANT}", "refs/pr/1", VARIANT),
        ("org/repo@main/all-layers-fast-int8", "main", "all-layers-fast-int8"),
    ],
)
def test_a_name_on_the_hub_has_parts(prefix, text, revision, variant):
    assert parse_source(prefix + text) == Source("hf://org/repo", revision, variant)


def test_parts_can_be_given_beside_the_name():
    assert parse_source("org/repo", "v1", VARIANT) == Source("hf://org/repo", "v1", VARIANT)
    assert parse_source("org/repo@v1", "v1") == Source("hf://org/repo", "v1")


@pytest.mark.parametrize(
    ("text", "revision", "variant", "message"),
    [
        ("o/r@v1", "v2", None, "Leave out one"),
        (f"o/r/{VARIANT}", None, "other", "Leave out one"),
        ("https://host/a", "v1", None, "A URL has no revisions"),
        ("https://[host/a", None, None, "is not a URL"),
    ],
)
def test_parts_that_disagree_and_damaged_urls_are_refused(text, revision, variant, message):
    with pytest.raises(InputError, match=message):
        parse_source(text, revision, variant)


@pytest.mark.parametrize(
    "text", ["", "repo", "hf://", "hf://repo", "./bundle", "/bundle", "org/repo@", "o rg/repo", "@v"]
)
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match="expected ORG/REPO"):
        parse_source(text)


@pytest.mark.parametrize(
    ("text", "variant", "place"),
    [
        ("https://host/a/b/", None, "https://host/a/b"),
        ("https://host/a/bertscore.json?key=1", None, "https://host/a?key=1"),
        ("https://host/a?key=1", VARIANT, f"https://host/a/{VARIANT}?key=1"),
        ("s3://bucket/a", VARIANT, f"s3://bucket/a/{VARIANT}"),
        ("file:///a/b", None, "file:///a/b"),
    ],
)
def test_a_url_is_that_of_a_folder(text, variant, place):
    assert parse_source(text, None, variant) == Source(place)


def test_a_source_is_written_as_it_is_named_without_secrets():
    assert str(parse_source("https://me:secret@host/a?key=secret#x")) == "https://host/a"
    assert str(parse_source(f"org/repo@v1/{VARIANT}")) == f"hf://org/repo@v1/{VARIANT}"


@pytest.mark.parametrize(("revision", "pinned"), [(COMMIT, True), ("main", False), (None, False), (COMMIT[:8], False)])
def test_a_commit_is_pinned(revision, pinned):
    assert Source("hf://org/repo", revision).is_pinned is pinned
