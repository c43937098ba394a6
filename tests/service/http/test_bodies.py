"""Malformed bodies are answered with a status of the 4xx, as quickly as any others."""

import json
import random

import pytest

from tests.support.http_server import JSON, error_of, refusal

GOOD = {
    "/v1/score": {
        "pairs": [{"candidate": "a cat", "references": ["the cat"]}],
        "model": "tiny-bert",
    },
    "/v1/match": {"candidate": "a cat", "reference": "the cat", "model": "tiny-bert"},
}
NOT_JSON = [
    b"",
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\x00}\x00",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"candidate": NaN}',
    b'{"candidate": Infinity}',
    b'{"candidate": -Infinity}',
    b'{"candidate": "\\ud800"}',
    b'{"candidate": "\\udc00\\ud800"}',
    b'{"candidate": "\xed\xa0\x80"}',
    b'{"candidate": "a\nb"}',
    b'{"candidate": "a",}',
    b'{"candidate": "a"} {}',
    b"{'candidate': 'a'}",
    b"[1}",
    b'{"unknown": 1',
]
NUMBERS = [0, -1, 1.5, 10**300, 1e308]
LISTS = [[], [[[]]], ["a", 1], [None] * 10, [["a"]]]
VALUES = [None, True, *NUMBERS, *LISTS, {}, {"a": {}}, {"candidate": "a"}, "\x00", "\u202e" * 10]


def paths_of(value, path=()):
    """Yield the path of every place in a value."""
    yield path
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in entries:
        yield from paths_of(inner, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def mutations(good, count):
    """Yield bodies that differ from a good one in one place by type, or in one byte."""
    dice = random.Random(7)  # noqa: S311 -- chance that repeats is wanted
    for path in paths_of(good):
        for value in VALUES:
            yield json.dumps(replaced(good, path, value)).encode()
    text = json.dumps(good).encode()
    for _ in range(count):
        place = dice.randrange(len(text))
        yield text[:place] + bytes([dice.randrange(256)]) + text[place + dice.randrange(3) :]


@pytest.mark.parametrize("path", GOOD)
def test_malformed_bodies_are_answered(client, path):
    bodies = [*NOT_JSON, *mutations(GOOD[path], 250)]
    statuses = []
    for body in bodies:
        response = client.post(path, content=body, headers=JSON)
        statuses.append(response.status_code)
        answer = json.loads(response.content, parse_constant=pytest.fail)
        if response.status_code != 200:  # some changes leave a body as good as it was
            assert response.status_code in (400, 422), body
            assert {*error_of(response)} <= {"code", "message", "pair"}
            assert "Traceback" not in answer["error"]["message"]
    assert len(bodies) > 300
    assert statuses[: len(NOT_JSON)] == [400] * len(NOT_JSON)
    assert statuses.count(400) > 100
    assert statuses.count(422) > 40


def test_a_message_repeats_little_of_the_body(client):
    response = client.post("/v1/score", json={"pairs": [], "x" * 100_000: 1})
    assert response.status_code == 422
    assert len(error_of(response)["message"]) == 500


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"pairs": tru}', "It is malformed from byte 11 on."),
        (b'{"pairs": [{"candidate": "\xff"}]}', "The byte at offset 26 is not UTF-8."),
        (b'{"pairs": NaN}', "It is malformed from byte 10 on."),
        (b"[" * 99_999, "It is nested too deeply."),
        (b'{"pairs": ["\\uD83D, half a pair"]}', "It is malformed from byte 18 on."),
    ],
)
def test_a_message_names_the_place_that_is_not_json(client, content, reason):
    response = client.post("/v1/score", content=content, headers=JSON)
    assert error_of(response) == {
        "code": "malformed_json",
        "message": f"The body is not JSON. {reason}",
    }


@pytest.mark.parametrize("number", [b"9" * 5000, b"1e999"])
def test_a_number_out_of_range_is_of_the_wrong_type(client, number):
    body = b'{"pairs": [{"candidate": "a", "reference": %s}]}' % number
    response = client.post("/v1/score", content=body, headers=JSON)
    assert (*refusal(response), error_of(response)["pair"]) == (422, "invalid", 0)


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        ("/v1/score", '{"pairs": [], "pairs": [{"candidate": "a", "reference": "b"}]}', "pairs"),
        (
            "/v1/score",
            '{"pairs": [{"candidate": "a", "reference": "b", "reference": "b"}]}',
            "reference",
        ),
        (
            "/v1/score",
            r'{"pairs": [{"candidate": "a", "reference": "b", "c\u0061ndidate": "c"}]}',
            "candidate",
        ),
        ("/v1/match", '{"candidate": "a", "reference": "b", "html": true, "html": true}', "html"),
    ],
)
def test_a_key_that_occurs_twice_in_an_object_is_refused(client, path, body, key):
    response = client.post(path, content=body.encode(), headers=JSON)
    message = f"The body: the key '{key}' occurs 2 times; expected once."
    assert (response.status_code, error_of(response)) == (
        422,
        {"code": "invalid", "message": message},
    )


def test_a_key_may_occur_in_a_text_and_in_every_pair(client):
    pairs = [{"candidate": '"candidate": "a", "candidate": "b"', "reference": "a"}] * 2
    assert client.post("/v1/score", json={"pairs": pairs}).status_code == 200
