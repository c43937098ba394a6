"""The answers of a hub, or of what pretends to be one, are checked and named."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from bertscore_onnx.errors import HubError, InputError
from bertscore_onnx.hub import pull
from bertscore_onnx.hub.remote import open_remote
from bertscore_onnx.hub.source import Source


def info(**fields):
    return json.dumps({"id": "org/tiny", "sha": "0" * 40, **fields}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[" * 100_000,
        info(siblings=[{"rfilename": "bertscore.json", "size": "large"}]),
        info(siblings=[{"rfilename": "bertscore.json", "size": -1}]),
        info(siblings=[{"rfilename": 3}]),
        info(siblings=[{"rfilename": "\ud800/bertscore.json", "size": 1}]),
        info(sha=None),
    ],
    ids=["empty", "deep", "size", "negative", "name", "surrogate", "commit"],
)
def test_another_answer_is_named(hub, content):
    hub.replaced["/revision/main"] = content
    with pytest.raises(HubError, match=r"hf://org/tiny did not answer as a hub does: "):
        pull("org/tiny")


def test_the_names_of_an_answer_are_not_all_listed(hub):
    siblings = [{"rfilename": f"{number}/bertscore.json", "size": 1} for number in range(100_000)]
    hub.replaced["/revision/main"] = info(siblings=siblings)
    with pytest.raises(InputError, match=r"several variants: .* and 99,988 more") as refused:
        pull("org/tiny")
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("name", ["org/a--b", "org/a.."])
def test_a_name_that_no_repository_has_is_an_error(hub, name):
    with pytest.raises(InputError, match="cannot be the name of a repository"):
        pull(name)


@pytest.mark.parametrize("header", ["content-range", "content-length"])
@pytest.mark.parametrize("value", ["9" * 4999, "²", "-1", ""])
def test_an_impossible_number_in_a_header_does_not_count(online, monkeypatch, header, value):
    headers = {header: f"bytes {value}-" if header == "content-range" else value}
    response = SimpleNamespace(status_code=206, headers=headers, iter_bytes=lambda: iter([b"{}"]))
    session = SimpleNamespace(stream=lambda *_, **__: nullcontext(response))
    monkeypatch.setattr("huggingface_hub.utils.get_session", lambda: session)
    with open_remote(Source("http://127.0.0.1"), None).open("a", offset=3) as body:
        assert (body.size, b"".join(body.chunks)) == (None, b"{}")
