"""A FastAPI application that scores.

    export BERTSCORE_BUNDLE=path/to/bundle
    uvicorn fastapi_app:app

The bundle is a folder that `bertscore-onnx export` wrote.
"""

import asyncio
import math
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import (
    ClosedError,
    DeadlineError,
    InputError,
    QueueFullError,
    WorkerError,
)
from bertscore_onnx_service import MicroBatcher


class Texts(BaseModel):
    """The body of a request."""

    candidates: list[str]
    references: list[str | list[str]]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Load the model before the first request, and finish the last one before shutdown."""
    with BERTScorer(os.environ["BERTSCORE_BUNDLE"]) as scorer, MicroBatcher(scorer) as batcher:
        app.state.batcher = batcher
        yield
        await asyncio.to_thread(batcher.drain)


app = FastAPI(lifespan=lifespan)


@app.exception_handler(RequestValidationError)
async def refuse(request: Request, error: RequestValidationError) -> JSONResponse:
    """Describe the errors of a body without repeating their input, which may not be valid JSON,
    such as NaN.
    """
    return JSONResponse(
        {"detail": [{"loc": one["loc"], "msg": one["msg"]} for one in error.errors()]}, 422
    )


@app.post("/score")
async def score(texts: Texts, request: Request) -> dict[str, list[float]]:
    """Score a body; if the server cancels this task because the client disconnected, the request is
    cancelled.
    """
    try:
        scores = await request.app.state.batcher.score(texts.candidates, texts.references)
    except InputError as error:
        raise HTTPException(422, str(error)) from error
    except QueueFullError as error:
        raise HTTPException(
            429, str(error), {"Retry-After": str(math.ceil(error.retry_after))}
        ) from error
    except (ClosedError, WorkerError) as error:
        raise HTTPException(503, str(error)) from error
    except DeadlineError as error:
        raise HTTPException(504, str(error)) from error
    return {"P": scores.P.tolist(), "R": scores.R.tolist(), "F": scores.F.tolist()}


@app.get("/live")
async def live(request: Request) -> None:
    """Return 200 if this process works, else 503: restart it."""
    if not request.app.state.batcher.live:
        raise HTTPException(503, "not live")


@app.get("/ready")
async def ready(request: Request) -> None:
    """Return 200 if this process can score, else 503."""
    if not request.app.state.batcher.ready:
        raise HTTPException(503, "not ready")
