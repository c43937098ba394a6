"""No client holds slots, bytes or threads back from the others."""

import json
import threading
from contextlib import ExitStack, suppress

from bertscore_onnx_service.http.limits import Limits
from tests.support.http_server import (
    BODY,
    JSON,
    posted,
    refusal,
    serving,
    serving_bundles,
    wait_until,
)
from tests.support.raw_http import answer_of, connected, head, received


def test_a_slot_is_free_again_when_its_body_does_not_come_in_time(models):
    limits = Limits(max_requests=1, read_timeout=3)
    with serving(models, limits) as client, connected(client, head() + b'{"pairs":') as slow:
        wait_until(lambda: client.app.state.admission.active)
        assert refusal(client.post("/v1/score", json=BODY)) == (429, "too_busy")
        assert b"read_timeout" in received(slow)
        wait_until(lambda: client.post("/v1/score", json=BODY).status_code == 200)


def test_a_scored_request_keeps_its_slot_from_others(models, fake_batcher):
    batcher = fake_batcher()
    with serving(models, Limits(max_requests=1)) as client:
        with posted(client) as answers:
            wait_until(lambda: batcher.calls)
            # its body is not sent
            answer = answer_of(client, head("application/json", "Connection: close"))
            assert client.get("/health/live").status_code == 200
            batcher.released.set()
        assert answers[0].status_code == client.post("/v1/score", json=BODY).status_code == 200
    assert answer.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: 1\r\n" in answer.lower()


def test_a_client_that_does_not_read_loses_its_slot(models):
    body = json.dumps({"pairs": [{"candidate": "a", "reference": "b"}] * 1000}).encode()
    request = head(length=len(body)) + body
    with serving(models, Limits(max_requests=1, read_timeout=0.5)) as client, ExitStack() as opened:
        unread = opened.enter_context(connected(client, receive_buffer=4096))
        unread.settimeout(0.2)
        with suppress(OSError):  # a timeout or a reset
            for _ in range(500):
                unread.sendall(request)
        wait_until(lambda: client.post("/v1/score", json=BODY).status_code == 200)


def test_the_bytes_of_all_bodies_have_a_bound(models):
    limits = Limits(max_body=1000, max_bytes=1500)
    with serving(models, limits) as client, connected(client, head(length=1000) + b" ") as first:
        wait_until(lambda: client.app.state.admission.num_bytes == 1000)
        assert refusal(client.post("/v1/score", content=b" " * 600, headers=JSON)) == (
            429,
            "too_busy",
        )
        assert client.post("/v1/score", json=BODY).status_code == 200
        first.close()
        wait_until(lambda: client.app.state.admission.num_bytes == 0)
        assert client.post("/v1/score", json={"pairs": BODY["pairs"] * 20}).status_code == 200
        wait_until(lambda: client.app.state.admission.num_bytes == 0)


def test_no_more_than_a_queue_is_tokenised_at_a_time(rescaled_bundle, monkeypatch):
    with serving_bundles(rescaled_bundle, limits=Limits(max_queue=1)) as client:
        batcher = client.models.select().batcher
        entered, gate = threading.Event(), threading.Event()
        tokenise = batcher.tokenise

        def slowly(pairs, **options):
            entered.set()
            assert gate.wait(60)
            return tokenise(pairs, **options)

        monkeypatch.setattr(batcher, "tokenise", slowly)
        body = {"pairs": BODY["pairs"] * 200}  # more than is tokenised in the event loop
        with posted(client, body) as answers:
            assert entered.wait(60)
            assert client.post("/v1/score", json=BODY).status_code == 429
            gate.set()
        assert answers[0].status_code == 200
