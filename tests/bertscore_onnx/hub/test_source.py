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
    assert parse_source(prefix + text) == Source("org/repo", revision, variant)


@pytest.mark.parametrize(
    "text",
    ["", "repo", "hf://", "hf://repo", "./bundle", "/bundle", "org/repo@", "o rg/repo", "@v", "org/a--b", "org/a.."],
)
def test_other_texts_are_refused(text):
    with pytest.raises(InputError, match="expected ORG/REPO"):
        parse_source(text)


@pytest.mark.parametrize("url", ["https://host/a", "s3://bucket/a"])
def test_for_other_storage_a_path_is_advised(url):
    with pytest.raises(InputError, match=r"expected ORG/REPO.* give its path to --model"):
        parse_source(url)


def test_a_source_is_written_as_it_is_named():
    assert str(parse_source(f"org/repo@v1/{VARIANT}")) == f"hf://org/repo@v1/{VARIANT}"


@pytest.mark.parametrize(("revision", "pinned"), [(COMMIT, True), ("main", False), (None, False), (COMMIT[:8], False)])
def test_a_commit_is_pinned(revision, pinned):
    assert Source("org/repo", revision).is_pinned is pinned
