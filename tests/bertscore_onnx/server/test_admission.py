"""What one client may not do to the others: hold slots, bytes, threads or connections."""

import json
import threading
from contextlib import ExitStack, suppress

import pytest

from bertscore_onnx.server import admission
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models import Models
from tests.support.http_server import CPU, error_of, serving, wait_until
from tests.support.raw_http import connected, head, received

BODY = {"pairs": [{"candidate": "a cat", "reference": "the cat"}]}

LINE = b'{"candidate": "the cat sat", "reference": "the dog sat"}\n'

NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def little_patience(monkeypatch):
    monkeypatch.setattr(admission, "PATIENCE", 0.2)


@pytest.mark.parametrize("sent", [head() + b'{"pairs":', head("application/x-ndjson") + LINE])
def test_a_slot_that_waits_for_its_client_is_taken_back(models, little_patience, sent):
    with serving(models, Limits(max_requests=1)) as client, connected(client, sent) as slow:
        wait_until(lambda: client.app.state.admission.active)
        wait_until(lambda: client.post("/v1/score", json=BODY).status_code == 200, 10)
        assert b"read_timeout" in received(slow)


def test_a_request_that_is_scored_keeps_its_slot(models, little_patience, fake_batcher):
    batcher = fake_batcher()
    with serving(models, Limits(max_requests=1)) as client:
        first = threading.Thread(target=client.post, args=("/v1/score",), kwargs={"json": BODY})
        first.start()
        wait_until(lambda: batcher.calls)
        assert not batcher.cancelled.wait(0.5)
        assert client.post("/v1/score", json=BODY).status_code == 429
        batcher.released.set()
        first.join()


def test_who_does_not_read_loses_the_slot(models):
    body = json.dumps({"pairs": [{"candidate": "a", "reference": "b"}] * 1000}).encode()
    request = head(length=len(body)) + body
    with serving(models, Limits(max_requests=1, read_timeout=0.5)) as client, ExitStack() as opened:
        unread = opened.enter_context(connected(client, receive_buffer=4096))
        unread.settimeout(0.2)
        with suppress(OSError):  # a timeout or a reset
            for _ in range(500):
                unread.sendall(request)
        wait_until(lambda: client.post("/v1/score", json=BODY).status_code == 200, 10)


def test_the_bytes_of_all_bodies_have_a_bound(models):
    limits = Limits(max_body=1000, max_bytes=1500)
    with serving(models, limits) as client, connected(client, head(length=1000) + b" ") as first:
        wait_until(lambda: client.app.state.admission.num_bytes == 1000)
        refused = client.post("/v1/score", content=b" " * 600, headers={"Content-Type": "application/json"})
        assert (refused.status_code, error_of(refused)["code"]) == (429, "too_busy")
        streamed = client.post("/v1/score", content=LINE * 20, headers=NDJSON)
        assert (streamed.status_code, error_of(streamed)["code"]) == (429, "too_busy")
        assert client.post("/v1/score", json=BODY).status_code == 200
        first.close()
        wait_until(lambda: client.app.state.admission.num_bytes == 0)
        assert client.post("/v1/score", content=LINE * 20, headers=NDJSON).status_code == 200
        assert client.app.state.admission.num_bytes == 0


def test_no_more_than_a_queue_is_tokenised_at_a_time(rescaled_bundle, monkeypatch):
    limits = Limits(max_queue=1)
    with Models.load([str(rescaled_bundle)], {}, limits, CPU) as models, serving(models, limits) as client:
        batcher = models.select().batcher
        entered, gate = threading.Event(), threading.Event()
        tokenise = batcher.tokenise

        def slowly(pairs, **options):
            entered.set()
            assert gate.wait(20)
            return tokenise(pairs, **options)

        monkeypatch.setattr(batcher, "tokenise", slowly)
        statuses = []
        body = {"pairs": BODY["pairs"] * 200}  # more than is tokenised in the event loop
        first = threading.Thread(target=lambda: statuses.append(client.post("/v1/score", json=body).status_code))
        first.start()
        assert entered.wait(20)
        assert client.post("/v1/score", json=BODY).status_code == 429
        gate.set()
        first.join()
        assert statuses == [200]
