import asyncio
import json
import os
import signal
import threading
from functools import partial

import h11
import pytest

from reliability.attacker import Attacker
from reliability.cases import starvation
from reliability.cases.adversary import bodies, case
from reliability.cases.adversary.attacks import Attack
from reliability.cases.fuzzing.exchanges import Ending, exchanges
from reliability.server import Server
from reliability.settings import Settings
from reliability.traffic import CLOSED, INTERNAL, NEVER, ask, keep_asking, pairs_body, request_of, statuses_in
from reliability.watch import HEALTH_SECONDS, Watch
from tests.reliability.test_run import TINY

LIMIT = 2_000_000


def honest_requests():
    return [request_of(pairs_body([("a text", "another")])), request_of(b"{}")]


@pytest.mark.slow
def test_a_watch_sees_that_a_server_stands_still(tiny_bundle):
    with Server(tiny_bundle) as server, Watch(server) as watch:
        os.kill(server.process.pid, signal.SIGSTOP)
        threading.Event().wait(HEALTH_SECONDS + 0.3)
        os.kill(server.process.pid, signal.SIGCONT)
        threading.Event().wait(0.5)
    assert watch.slowest > HEALTH_SECONDS
    assert watch.unanswered == 0
    with Server(tiny_bundle) as server, Watch(server) as watch:
        server.process.kill()
        server.process.wait()
        threading.Event().wait(0.5)
    assert watch.unanswered > 0


@pytest.mark.slow
def test_an_attacker_counts_what_it_is_answered(tiny_bundle):
    with (
        Server(tiny_bundle) as server,
        Attacker(partial(keep_asking, honest_requests, 2), server.port, 0.5) as attacker,
    ):
        statuses = attacker.statuses()
        assert server.requests_left(5) == 0
    assert statuses.keys() == {200, 422}


def test_connections_without_an_answer_are_told_apart():
    async def ask_one_that(waits):
        is_over = asyncio.Event()

        async def serve(reader, writer):
            if waits:
                await reader.read()
            writer.close()
            await writer.wait_closed()
            is_over.set()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            status = await ask(server.sockets[0].getsockname()[1], b"GET / HTTP/1.1\r\n\r\n", 0.2)
            await is_over.wait()
        return status

    assert asyncio.run(ask_one_that(waits=False)) == CLOSED
    assert asyncio.run(ask_one_that(waits=True)) == NEVER


def test_statuses_are_those_of_all_answers():
    assert statuses_in(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}HTTP/1.1 422 X\r\n\r\n") == [200, 422]
    assert statuses_in(b'HTTP/1.1 200 OK\r\n\r\n{"error":{"code":"internal"}}') == [INTERNAL]


@pytest.mark.parametrize(
    "make", [bodies.duplicate_keys, bodies.combining_marks, bodies.dots, bodies.token_bombs, bodies.long_matches]
)
def test_an_attack_is_json_that_a_server_takes_in(make):
    for request in make():
        head, _, body = request.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}\r\n".encode() in head
        assert len(body) <= LIMIT
        json.loads(body)


def test_the_same_exchanges_are_made_up_each_time():
    first, again = list(exchanges(300)), list(exchanges(300))
    assert first == again
    assert sum(exchange.requests for exchange in first) == 300
    assert {exchange.ending for exchange in first} == set(Ending)


def test_an_exchange_that_awaits_its_answers_has_whole_requests():
    for exchange in exchanges(300):
        if exchange.ending is Ending.AWAIT:
            assert whole_requests(b"".join(exchange.pieces)) == exchange.requests


def whole_requests(content: bytes) -> int:
    """Count the requests in what a connection sends; fails where one is not of the form of HTTP, or not whole."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(content)
    whole = 0
    while (event := connection.next_event()) is not h11.NEED_DATA:
        if isinstance(event, h11.EndOfMessage):
            whole += 1
            connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
    assert connection.trailing_data == (b"", False)
    return whole


@pytest.mark.slow
def test_an_attack_that_is_none_keeps_every_bound(tiny_bundle, monkeypatch):
    attack = Attack(partial(keep_asking, honest_requests, 2))
    monkeypatch.setattr(case, "ATTACKS", {"idle connections": attack})
    figures = case.measure(Settings(TINY, tiny=tiny_bundle, minilm=tiny_bundle))
    assert [one.name for one in figures if not one.met and not one.goal.of_speed] == []
    assert figures[0].name == "slowest /health/live (idle connections)"


@pytest.mark.slow
def test_a_polite_client_is_compared_beside_two_neighbours(tiny_bundle, monkeypatch):
    neighbour = partial(keep_asking, honest_requests, 2)
    monkeypatch.setattr(starvation, "NEIGHBOURS", {"a few requests": (neighbour, neighbour)})
    ratio, failures, *_ = starvation.measure(Settings(TINY, tiny=tiny_bundle, minilm=tiny_bundle))
    assert ratio.name == "MiniLM: a few requests: p99 of a polite client, against beside an ordinary one"
    assert 0 < ratio.median < 100
    assert failures.met
