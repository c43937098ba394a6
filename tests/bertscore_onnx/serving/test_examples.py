"""The recipes of docs/serving.md run as they stand."""

import asyncio
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

from .conftest import GUARD

DOCUMENT = Path(__file__).parents[3] / "docs" / "serving.md"
CANDS = ["the cat sat on a mat", "a dog ran", "it is not a red house", "the tree"]
REFS = ["a cat sits on the mat", "the dog runs", "it was a blue house", "a tree"]
GUNICORN = [
    "gunicorn",
    "--bind=127.0.0.1:0",
    "--chdir=examples",
    "--workers=2",
    "--worker-class=gthread",
    "--threads=4",
]
TEXTS = {"candidates": CANDS, "references": REFS}


@pytest.fixture(scope="module")
def expected(tiny_bundle):
    with BERTScorer(tiny_bundle) as scorer:
        return scorer.score(CANDS, REFS).F.tolist()


def test_every_recipe_of_the_document_is_tested():
    named = set(re.findall(r"examples/(\w+)\.py", DOCUMENT.read_text(encoding="utf-8")))
    assert named == {"thread_pool", "fastapi_app", "gunicorn_app"}


def test_a_thread_pool(tiny_bundle, expected):
    assert score_pairs(str(tiny_bundle), CANDS, REFS) == pytest.approx(expected, abs=1e-5)


def test_fastapi(tiny_bundle, expected, monkeypatch):
    from fastapi_app import app

    async def visit():
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client,
        ):
            ready = await client.get("/ready")
            scored = await asyncio.gather(*(client.post("/score", json=TEXTS) for _ in range(8)))
            refused = await client.post("/score", json={"candidates": ["a"], "references": []})
        return ready, scored, refused

    monkeypatch.setenv("BERTSCORE_BUNDLE", str(tiny_bundle))
    ready, scored, refused = asyncio.run(visit())
    assert ready.status_code == 200
    for answer in scored:
        assert answer.json()["F"] == pytest.approx(expected, abs=1e-5)
    assert refused.status_code == 422
    assert "1 candidates" in refused.json()["detail"]
    assert not app.state.batcher.ready


@pytest.mark.skipif(find_spec("gunicorn") is None, reason="gunicorn runs on Unix only")
def test_gunicorn_without_preload(tiny_bundle, expected, pytestconfig):
    server = subprocess.Popen(
        [sys.executable, "-m", *GUNICORN, "gunicorn_app:application"],
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
