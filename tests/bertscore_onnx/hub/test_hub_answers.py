"""The answers of a hub, or of what pretends to be one, are bounded and named."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from bertscore_onnx.errors import BundleNotFoundError, HubError, InputError
from bertscore_onnx.hub import pull, remote
from bertscore_onnx.hub.source import Source

SHA = "0" * 40


@pytest.fixture
def answer(monkeypatch, online, home):
    """Return a function that answers every request with some content."""

    def answer(*chunks, status=200, **headers):
        @contextmanager
        def respond(*_):
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            yield SimpleNamespace(status_code=status, headers=named, iter_bytes=lambda: iter(chunks))

        monkeypatch.setattr(remote, "_request", respond)

    return answer


def info(**fields):
    return json.dumps({"sha": SHA, **fields}).encode()


def test_an_endless_answer_is_cut(answer, monkeypatch):
    monkeypatch.setattr(remote, "MAX_ANSWER_BYTES", 1000)
    answer(*[b" " * 100] * 100)
    with pytest.raises(HubError, match=r"hf://org/tiny did not answer as a hub does: more than 1,000 bytes"):
        pull("org/tiny")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[" * 100_000,
        info(siblings=[{"rfilename": "bertscore.json", "size": "large"}]),
        info(siblings=[{"rfilename": "bertscore.json", "size": -1}]),
        info(siblings=[{"rfilename": 3}]),
        info(sha=None),
    ],
    ids=["empty", "deep", "size", "negative", "name", "commit"],
)
def test_another_answer_is_named(answer, content):
    answer(content)
    with pytest.raises(HubError, match=r"hf://org/tiny did not answer as a hub does: "):
        pull("org/tiny")


def test_the_names_of_an_answer_are_not_all_listed(answer):
    answer(info(siblings=[{"rfilename": f"{number}/bertscore.json", "size": 1} for number in range(100_000)]))
    with pytest.raises(InputError, match=r"several variants: .* and 99,988 more") as refused:
        pull("org/tiny")
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("header", ["content_range", "content_length"])
@pytest.mark.parametrize("value", ["9" * 4999, "²", "-1", ""])
def test_an_impossible_number_in_a_header_does_not_count(answer, header, value):
    answer(b"{}", status=206, **{header: f"bytes {value}-" if header == "content_range" else value})
    with remote._open_url("http://127.0.0.1/a", "a", offset=3, headers={}) as body:
        assert (body.start, body.size) == (3, None)


def test_a_token_is_not_sent_to_where_an_answer_leads(answer, monkeypatch):
    requested = []

    @contextmanager
    def respond(url, headers):
        requested.append(url)
        content = b"[]" if "/tree/" in url else info(siblings=[{"rfilename": "a/bertscore.json"}])
        links = {"link": '<http://127.0.0.1:9/elsewhere>; rel="next"'}
        yield SimpleNamespace(status_code=200, headers=links, iter_bytes=lambda: iter([content]))

    monkeypatch.setattr(remote, "_request", respond)
    source = Source("hf://org/tiny")
    assert remote.HubRepository(source, "secret").sizes == {"a/bertscore.json": None}
    assert ["revision" in requested[0], "tree" in requested[1], len(requested)] == [True, True, 2]


def test_a_repository_without_a_bundle_is_named(answer):
    answer(info())
    with pytest.raises(BundleNotFoundError, match="holds no bundle"):
        pull("org/tiny")
