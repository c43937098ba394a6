"""The examples of docs/in_process.md run unchanged."""

import asyncio
import contextlib
import io
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from thread_pool import score_pairs

from bertscore_onnx import BERTScorer
from bertscore_onnx_service import MicroBatcher
from tests.support.fake_scorer import GUARD

pytestmark = pytest.mark.slow  # it starts servers

DOCUMENT = Path(__file__).parents[3] / "docs" / "in_process.md"
CANDS = ["the cat sat on a mat", "a dog ran", "it is not a red house", "the tree"]
REFS = ["a cat sits on the mat", "the dog runs", "it was a blue house", "a tree"]
GUNICORN = [
    "--bind=127.0.0.1:0",
    "--chdir=examples",
    "--workers=2",
    "--worker-class=gthread",
    "--threads=4",
]
TEXTS = {"candidates": CANDS, "references": REFS}


@pytest.fixture(scope="module")
def expected(scorer):
    return scorer.score(CANDS, REFS).F.tolist()


def test_every_example_of_the_document_is_tested():
    named = set(re.findall(r"examples/(\w+)\.py", DOCUMENT.read_text(encoding="utf-8")))
    assert named == {"thread_pool", "fastapi_app", "gunicorn_app"}


def test_a_thread_pool(tiny_bundle, expected, pytestconfig):
    assert score_pairs(str(tiny_bundle), CANDS, REFS) == pytest.approx(expected, abs=1e-5)
    command = [sys.executable, pytestconfig.rootpath / "examples" / "thread_pool.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr.startswith("Usage: python ")) == (1, True)


def client_of(app, **options):
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, **options), base_url="http://test")


def test_fastapi(tiny_bundle, expected, monkeypatch):
    from fastapi_app import app

    async def request():
        async with app.router.lifespan_context(app), client_of(app) as client:
            statuses = [(await client.get(path)).status_code for path in ("/live", "/ready")]
            scored = await asyncio.gather(*(client.post("/score", json=TEXTS) for _ in range(8)))
            refused = await client.post("/score", json={"candidates": ["a"], "references": []})
        return statuses, scored, refused

    monkeypatch.setenv("BERTSCORE_BUNDLE", str(tiny_bundle))
    statuses, scored, refused = asyncio.run(request())
    assert statuses == [200, 200]
    for answer in scored:
        assert answer.json()["F"] == pytest.approx(expected, abs=1e-5)
    assert refused.status_code == 422
    assert "differ in number, 1 and 0" in refused.json()["detail"]
    assert not app.state.batcher.ready


@pytest.fixture
def full_batcher(make_batcher, held):
    batcher = make_batcher(max_queue=1)
    held(batcher)
    batcher.submit(["a"], ["x"])
    return batcher


def test_fastapi_answers_a_full_queue_as_the_server_does(full_batcher):
    from fastapi_app import app

    async def post():
        async with client_of(app) as client:
            return await client.post("/score", json=TEXTS)

    app.state.batcher = full_batcher
    answer = asyncio.run(post())
    assert (answer.status_code, int(answer.headers["Retry-After"]) >= 1) == (429, True)


MALFORMED = [
    b"{",
    b"",
    b"\xff",
    b"[" * 100_000,
    b"[1]",
    b'"text"',
    b"null",
    b'{"candidates": ["a"]}',
]
BAD_BODIES = [
    *((body, 400) for body in MALFORMED),
    (b'{"candidates": ["a"], "references": ["b"], "idf": true}', 400),
    (b'{"candidates": ["a"], "references": []}', 422),
    (b'{"candidates": ["a"], "references": [NaN]}', 422),
    (b'{"candidates": 1, "references": null}', 422),
]


def test_fastapi_refuses_bad_bodies_in_json(tiny_bundle):
    from fastapi_app import app

    async def post(body):
        async with client_of(app, raise_app_exceptions=False) as client:
            return await client.post(
                "/score", content=body, headers={"Content-Type": "application/json"}
            )

    with BERTScorer(tiny_bundle) as scorer, MicroBatcher(scorer) as app.state.batcher:
        answers = [asyncio.run(post(body)) for body, _ in BAD_BODIES if b"idf" not in body]
    assert {answer.status_code for answer in answers} <= {400, 422}
    assert {answer.headers["Content-Type"] for answer in answers} == {"application/json"}


@pytest.fixture
def wsgi(tiny_bundle, monkeypatch):
    """Calls the WSGI application with a body; returns the status, the headers and the answer."""
    monkeypatch.setenv("BERTSCORE_BUNDLE", str(tiny_bundle))
    monkeypatch.delitem(sys.modules, "gunicorn_app", raising=False)
    import gunicorn_app

    def call(content):
        started = []
        environ = {"wsgi.input": io.BytesIO(content)}
        [body] = gunicorn_app.application(environ, lambda *start: started.append(start))
        [(status, headers)] = started
        return int(status.split()[0]), dict(headers), json.loads(body)

    with contextlib.closing(gunicorn_app.batcher):
        yield call


@pytest.mark.parametrize(("body", "status"), BAD_BODIES, ids=lambda value: str(value)[:20])
def test_gunicorn_refuses_bad_bodies_in_json(body, status, wsgi):
    found, headers, answer = wsgi(body)
    assert (found, headers["Content-Type"]) == (status, "application/json")
    assert answer["error"]


def test_gunicorn_answers_a_full_queue_as_the_server_does(wsgi, full_batcher, monkeypatch):
    monkeypatch.setattr("gunicorn_app.batcher", full_batcher)
    status, headers, answer = wsgi(json.dumps(TEXTS).encode())
    assert (status, int(headers["Retry-After"]) >= 1) == (429, True)
    assert "1 requests are waiting" in answer["error"]


@pytest.mark.skipif(find_spec("gunicorn") is None, reason="gunicorn runs on Unix only")
def test_gunicorn_without_preload(tiny_bundle, expected, pytestconfig):
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", *GUNICORN, "gunicorn_app:application"],
        cwd=pytestconfig.rootpath,
        env={**os.environ, "BERTSCORE_BUNDLE": str(tiny_bundle)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        listening = next(line for line in server.stderr if "Listening at" in line)
        address = re.search(r"http://\S+", listening)[0]
        with httpx.Client(timeout=GUARD) as client, ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: client.post(address, json=TEXTS).json(), range(8)))
            refused = client.post(address, json={"candidates": ["a"], "references": []})
        server.terminate()
        errors = server.communicate(timeout=GUARD)[1]
    finally:
        server.kill()
        server.wait()
    for answer in answers:
        assert answer["F"] == pytest.approx(expected, abs=1e-5)
        assert answer["process"] != server.pid
    assert refused.status_code == 422
    assert (server.returncode, "Traceback" in errors) == (0, False)
