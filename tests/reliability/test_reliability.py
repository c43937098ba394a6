"""The reliability suite can fail: broken bounds, crashes and hangs are figures, and each check
notices its fault.
"""

import asyncio
import contextlib
import json
import math
import os
import signal
import threading
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import h11
import pytest

from bertscore_onnx.errors import DigestError
from bertscore_onnx_service import MicroBatcher
from bertscore_onnx_service.jobs import inputs, job
from harness.processes import Child, ChildError
from harness.results import BEGIN, END, read_report
from reliability import __main__ as command
from reliability import adversary, damage, faults, hostile, jobs, load
from reliability.__main__ import CASES, run_cases
from reliability.adversary import Attack
from reliability.fuzzing import exchanges
from reliability.report import DOCUMENT, at_least, at_most, none_of
from reliability.scorers import late_spread
from reliability.server import HEALTH_SECONDS, Server, Watch
from reliability.settings import Settings, Sizes
from reliability.traffic import (
    INTERNAL,
    NEVER,
    Ending,
    Exchange,
    pairs_body,
    play,
    repeated_requests,
    request_of,
    statuses_in,
)

TINY = Sizes(
    case_seconds=60,
    requests=20,
    clients=4,
    faults=6,
    attack_seconds=0.3,
    rewritten_inputs=4,  # one may be read while it is written, which ends the job
    mutated_files=0,
)


@pytest.fixture
def settings(tiny_bundle):
    return Settings(TINY, tiny=tiny_bundle, minilm=tiny_bundle)


def hold(settings):
    return [none_of("lost", 0), at_least("found", 3, "MB", 2.5)]


def be_slow(settings):
    return [at_most("waited", 2.0, "s", 1, of_speed=True)]


def last_for_ever(settings):
    return [at_most("waited", math.inf, "s", 1)]


def break_down(settings):
    raise RuntimeError("no more")


@pytest.mark.parametrize(
    ("case", "options", "is_held", "shown"),
    [
        (hold, {}, True, "found    | 3 MB   | at least 2.5 MB | yes"),
        (be_slow, {}, False, "waited   | 2 s    | at most 1 s     | NO"),
        (
            be_slow,
            {"ignore_speed": True, "tries": 2},
            True,
            "waited   | 2 s    | at most 1 s     | NO",
        ),
        (last_for_ever, {"ignore_speed": True, "tries": 2}, False, "0 a case: Run 2 times"),
        (break_down, {}, False, "no more"),
    ],
)
def test_bounds_that_count_decide_the_run_and_the_exit_status(
    monkeypatch, settings, tmp_path, capsys, case, options, is_held, shown
):
    monkeypatch.setattr(command, "CASES", {"0": ("a case", case), "1": ("a case", hold)})
    assert run_cases(["0", "1"], settings, {"form": "tiny"}, tmp_path, **options) is is_held
    assert shown in capsys.readouterr().out
    report = read_report(tmp_path / "reliability.json")
    assert all(figure.met for figure in report.cases[1].figures)
    assert "Settings: form: tiny." in (tmp_path / "reliability.md").read_text(encoding="utf-8")
    monkeypatch.setattr(command, "run_cases", lambda *arguments, **options: is_held)
    model = SimpleNamespace(bundle=lambda: settings.tiny)
    monkeypatch.setattr(
        command, "Models", lambda *arguments: SimpleNamespace(tiny=model, minilm=model)
    )
    with contextlib.nullcontext() if is_held else pytest.raises(SystemExit, match="1"):
        command.main(["--case", "0"])


def test_the_document_has_its_marks_and_every_case():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert (text.count(BEGIN), text.count(END)) == (1, 1)
    assert all(f"| {number} {title} |" in text for number, (title, _) in CASES.items())


def test_a_crash_a_hang_and_an_error_of_a_process_differ():
    with Child() as child:
        with pytest.raises(ChildError, match="invalid literal"):
            child.do(int, "x", limit=60)
        assert child.do(os.getenv, "HF_HUB_OFFLINE", limit=60) == "1"
        with pytest.raises(ChildError, match="ended with status 7"):
            child.do(os._exit, 7, limit=60)
    with Child() as child, pytest.raises(ChildError, match="hangs"):
        child.do(time.sleep, 60, limit=0.2)


def met(figures):
    return [figure.met for figure in figures]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*truncated")
def test_lost_and_wrong_answers_break_the_bounds_of_batching(settings, monkeypatch):
    class Faulty(MicroBatcher):
        def submit(self, candidates, references):
            if len(candidates) == 1:
                raise RuntimeError("lost")
            return super().submit(["other"] * len(candidates), references)

    monkeypatch.setattr(load, "MicroBatcher", Faulty)
    assert met(load.measure_batching(settings)) == [False, False, True]


@pytest.mark.slow
def test_a_broken_batcher_that_stays_live_breaks_its_bound(settings, monkeypatch):
    class Live(MicroBatcher):
        live = True

    monkeypatch.setattr(faults, "MicroBatcher", Live)
    monkeypatch.setattr(faults, "PATIENCE", 1.0)
    monkeypatch.setattr(faults.batcher, "MIN_STALL", 30.0)  # which the case changes
    assert met(faults.measure(replace(settings, sizes=replace(TINY, faults=1)))) == [
        *[True] * 4,
        False,
        True,
    ]


def test_a_leak_spreads_the_second_half_and_a_start_does_not():
    assert late_spread([0, 50, 90, 90, 91, 90]) == 1
    assert late_spread([0, 10, 20, 30, 40, 50]) == 20


def crash(*case):
    os.abort()


@pytest.mark.slow
def test_damage_that_is_accepted_or_fatal_breaks_its_bound(settings, monkeypatch):
    missing = partial(damage.replace, "model.onnx", lambda file: None)
    monkeypatch.setattr(
        damage, "DAMAGES", {DigestError: {"none": lambda bundle: None, "missing": missing}}
    )
    assert met(damage.measure(settings)) == [False, True, False, True]
    monkeypatch.setattr(damage, "outcome", crash)
    assert met(damage.measure(settings)) == [True, False, True, False]


def whole_requests(content: bytes) -> int:
    """Count the requests on a connection; fail if one is not valid HTTP, or not whole."""
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


def test_fuzzed_exchanges_are_reproducible_and_complete():
    made = list(exchanges(300))
    assert made == list(exchanges(300))
    assert {exchange.ending for exchange in made} == set(Ending)
    for exchange in made:
        if exchange.answers:
            assert whole_requests(b"".join(exchange.parts)) == exchange.answers


def test_connections_without_an_answer_are_told_apart():
    async def outcome(*, waits: bool) -> list[int]:
        async def serve(reader, writer):
            if waits:
                await reader.read()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            return await play(
                Exchange([b"GET / HTTP/1.1\r\n\r\n"]), server.sockets[0].getsockname()[1], 0.2
            )

    assert asyncio.run(outcome(waits=False)) == []
    assert asyncio.run(outcome(waits=True)) == [NEVER]
    assert statuses_in(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}HTTP/1.1 422 X\r\n\r\n"
    ) == [200, 422]
    assert statuses_in(b'HTTP/1.1 200 OK\r\n\r\n{"error":{"code":"internal"}}') == [INTERNAL]


@pytest.mark.parametrize(
    "make", ["duplicate_keys", "combining_marks", "dots", "token_bombs", "long_matches"]
)
def test_an_attack_is_json_that_a_server_accepts(make):
    for request in getattr(adversary, make)():
        head, _, body = request.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}\r\n".encode() in head
        assert len(body) <= 2_000_000
        json.loads(body)


def honest_requests():
    return [request_of(pairs_body([("a text", "another")])), request_of(b"{}")]


@pytest.mark.slow
def test_an_attack_by_an_honest_client_keeps_every_bound(settings, monkeypatch):
    monkeypatch.setattr(
        adversary, "ATTACKS", {"none": Attack(repeated_requests(honest_requests, 2))}
    )
    figures = adversary.measure(settings)
    assert [figure.name for figure in figures if not figure.met and not figure.goal.of_speed] == []
    assert figures[0].name == "slowest /health/live (none)"


@pytest.mark.slow
def test_a_server_that_stands_still_or_ends_is_seen(tiny_bundle):
    with Server(tiny_bundle) as server, Watch(server) as watch:
        os.kill(server.process.pid, signal.SIGSTOP)
        threading.Event().wait(HEALTH_SECONDS + 0.3)
        os.kill(server.process.pid, signal.SIGCONT)
        threading.Event().wait(0.5)
        assert watch.slowest > HEALTH_SECONDS
        assert watch.unanswered == 0
        server.process.kill()
        threading.Event().wait(0.5)
    assert watch.unanswered > 0


def test_a_client_that_waits_or_gets_nothing_breaks_its_bound():
    greedy, ordinary = load.Polite([0.4] * 100), load.Polite([0.1] * 100)
    assert met([load.starved("any", greedy, ordinary), load.starved("any", ordinary, greedy)]) == [
        False,
        True,
    ]
    assert not load.starved("any", load.Polite(), ordinary).met


def test_parts_that_are_written_again_or_lost_are_counted(tmp_path):
    for number in range(3):
        (tmp_path / f"part-{number}.parquet").write_bytes(b"scores")
    before = jobs._stamps(tmp_path)
    assert jobs._changed(before, tmp_path) == 0
    (tmp_path / "part-0.parquet").unlink()
    os.utime(tmp_path / "part-1.parquet", (0, 0))
    assert jobs._changed(before, tmp_path) == 2


@pytest.mark.slow
def test_a_job_that_ignores_rewritten_inputs_breaks_its_bounds(settings, monkeypatch):
    for module in (job, inputs):
        monkeypatch.setattr(module, "check_unchanged", lambda table: None)
    monkeypatch.setattr(jobs, "_WAYS", jobs._WAYS[:1])
    refused_enough, no_wrong_scores, _ = met(jobs.measure_rewritten(settings))
    # some are refused by chance, as their bytes no longer fit
    assert not no_wrong_scores, refused_enough


@pytest.mark.parametrize(
    ("status", "errors", "raised", "must_fail", "outcome"),
    [
        (0, "", None, False, hostile.ENDED),
        (0, "", None, True, hostile.BROKE),
        (1, "Warning: odd\nError: It is a folder.\n", SystemExit(1), True, hostile.FAILED),
        (
            2,
            "Usage: score\nTry score -h\n\nError: It is a folder.\n",
            SystemExit(2),
            True,
            hostile.FAILED,
        ),
        (1, "", ValueError("odd"), False, hostile.BROKE),
        (1, "Error: one\nError: two\n", SystemExit(1), True, hostile.BROKE),
        (1, f"Error: {'x' * 3000}\n", SystemExit(1), True, hostile.BROKE),
        (1, "Error: There is not enough memory.\n", SystemExit(1), True, hostile.FULL),
    ],
)
def test_a_command_without_one_clear_last_line_is_seen(status, errors, raised, must_fail, outcome):
    assert hostile.outcome_of(status, errors, raised, must_fail=must_fail)[0] == outcome


def hang(*case):
    time.sleep(60)


@pytest.mark.slow
def test_commands_that_hang_or_crash_break_their_bounds(settings, monkeypatch):
    monkeypatch.setattr(hostile, "INPUTS", hostile.INPUTS[:1])
    monkeypatch.setattr(hostile, "SPECIAL", ("folder",))
    assert met(hostile.measure(settings)) == [True, True, True, True]
    monkeypatch.setattr(hostile, "attempt", hang)
    monkeypatch.setattr(hostile, "SECONDS", 0.2)
    assert met(hostile.measure(settings)) == [True, False, True, False]
    monkeypatch.setattr(hostile, "SECONDS", 60.0)
    monkeypatch.setattr(hostile, "attempt", crash)
    assert met(hostile.measure(settings)) == [False, True, True, False]
