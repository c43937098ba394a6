import os

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_service.http.app import ApiKeys
from tests.support.http_server import BODY, refusal, serving
from tests.support.raw_http import answer_of, head

KEYS = ["correct-horse-battery", "another-long-key-1234"]


@pytest.fixture
def key_file(tmp_path):
    return tmp_path / "keys"


def test_a_file_has_one_key_a_line_and_digests_are_kept(key_file):
    key_file.write_text(f"# keys\n\n  {KEYS[0]}  \r\n{KEYS[1]}\n")
    keys = ApiKeys.read(key_file)
    assert KEYS[0] not in repr(vars(keys))
    assert [keys.client_of(f"Bearer {key}") is not None for key in (*KEYS, "# keys", "")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment, nothing more\n"])
def test_a_file_without_keys_or_no_file_is_refused(key_file, content):
    with pytest.raises(InputError, match="Cannot read"):
        ApiKeys.read(key_file)
    key_file.write_text(content)
    with pytest.raises(InputError, match="no key"):
        ApiKeys.read(key_file)


@pytest.mark.parametrize("line", ["too-short", "two words are no key", "schlüssel-mit-umlaut"])
def test_a_bad_key_is_refused_by_its_line_and_not_shown(key_file, line):
    key_file.write_text(f"{KEYS[0]}\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match="Line 2") as caught:
        ApiKeys.read(key_file)
    assert line not in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_file_that_all_users_can_read_is_warned_of(key_file, caplog):
    key_file.write_text(KEYS[0])
    key_file.chmod(0o640)
    ApiKeys.read(key_file)
    assert not caplog.records
    key_file.chmod(0o644)
    ApiKeys.read(key_file)
    assert "Every user of this machine can read the keys" in caplog.text


@pytest.mark.parametrize(
    "sent",
    [
        head("application/json", "Transfer-Encoding: chunked", length=5),
        head("application/json", "Transfer-Encoding: chunked", length=None, version="1.0"),
    ],
)
def test_a_body_of_two_lengths_is_refused(client, sent):
    answer = answer_of(client, sent + b"0\r\n\r\n")
    assert b" 400 " in answer
    assert b"ambiguous_body" in answer


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "[::1].evil"]
)
def test_a_name_that_anybody_may_own_is_refused(models, host):
    with serving(models) as client:
        assert refusal(client.post("/v1/score", json=BODY, headers={"Host": host})) == (
            421,
            "misdirected",
        )
        assert client.get("/health/live", headers={"Host": host}).status_code == 421
    with serving(models, any_host=True) as client:
        assert client.post("/v1/score", json=BODY, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:80", "scorer", "a.localhost:8080"]
)
def test_a_name_of_this_machine_is_accepted(client, host):
    assert client.post("/v1/score", json=BODY, headers={"Host": host}).status_code == 200


def test_the_clients_of_two_keys_are_told_apart(models, fake_batcher):
    batcher = fake_batcher()
    batcher.released.set()
    with serving(models, keys=ApiKeys(KEYS)) as client:
        for key in (*KEYS, KEYS[0]):
            assert client.post(
                "/v1/score", json=BODY, headers={"Authorization": f"Bearer {key}"}
            ).is_success
    assert len({*batcher.clients}) == 2
    assert batcher.clients[0] == batcher.clients[2]
