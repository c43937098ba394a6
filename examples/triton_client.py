r"""Scores the lines of two files on a Triton server, with the model of `triton_repository.py`.

    pip install 'tritonclient[grpc]' bertscore-onnx
    python triton_client.py BUNDLE candidates.txt references.txt \
        [--url localhost:8001] [--name bertscore] [--lang en]

BUNDLE is the bundle that the server runs; the client uses its tokenizer, since the server takes
token ids. Prints P, R and F of each line, raw, or rescaled with the bundle's baseline of a
language.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import InferInput
from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException

from bertscore_onnx import BertScoreOnnxError, Scores
from bertscore_onnx.bundle.manifest import SCORING_INPUTS, SCORING_OUTPUTS
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.matching.rescaling import Rescaling, choose_rescaling
from bertscore_onnx.scoring.tokenization import load_tokenizer

WIDTH = 8
"""Both sides are padded to a multiple of this width, or to the maximum: Triton batches requests of
equal shapes.
"""

MAX_REQUESTS = 4
"""The most requests in flight at a time."""

TIMEOUT = 300
"""Timeout of a request in seconds."""

LINES = 4096
"""The number of lines read from each file at a time."""


class TritonScorer:
    """Scores pairs of texts with a model on a Triton server."""

    def __init__(
        self, client: InferenceServerClient, name: str, bundle: str, lang: str | None = None
    ) -> None:
        """Load the tokenizer of a bundle.

        Args:
            client: the client of the server.
            name: the model's name on the server.
            bundle: the path of the bundle that is served, or the name of its model.
            lang: the language whose baseline rescales the scores; None for raw scores.

        Raises:
            BertScoreOnnxError: there is no such bundle, or it has no such baseline.
        """
        opened = resolve_bundle(bundle, all_layers=None)
        manifest = opened.manifest
        self._client, self._name, self._bundle = client, name, opened
        self._tokenize = load_tokenizer(opened)
        self._rescaling = (
            Rescaling() if lang is None else choose_rescaling(manifest, manifest.precision, lang)
        )
        self._room = asyncio.Semaphore(MAX_REQUESTS)

    async def score(self, candidates: Sequence[str], references: Sequence[str]) -> Scores:
        """Score each candidate with the reference beside it.

        Raises:
            ValueError: the server's model was made from another bundle.
            InferenceServerException: the server cannot be reached, has no such model or fails.
        """
        max_pairs = await self._max_pairs()
        # each (texts,) of (tokens,)
        sides = [self._tokenize(texts)[0] for texts in (candidates, references)]
        widths = [max(map(len, pair)) for pair in zip(*sides, strict=True)]
        scores = np.zeros((len(SCORING_OUTPUTS), len(widths)), dtype=np.float32)

        async def score_some(pairs: list[int], width: int) -> None:
            async with self._room:
                arrays = [
                    array for ids in sides for array in padded([ids[pair] for pair in pairs], width)
                ]
                scores[:, pairs] = await self._infer(arrays)

        await asyncio.gather(
            *(score_some(pairs, width) for width, pairs in self._plan(widths, max_pairs))
        )
        return self._rescaling.apply(Scores(*scores, np.zeros(len(widths), dtype=np.int64)))

    async def _max_pairs(self) -> int:
        """Return how many pairs the server's model takes per request."""
        config = (await self._client.get_model_config(self._name, client_timeout=TIMEOUT)).config
        served, own = (
            config.parameters["bertscore_bundle"].string_value,
            self._bundle.manifest.digest,
        )
        if served != own:
            raise ValueError(
                f"The server's model {self._name} was made from the bundle "
                f"{served[:12] or '(unknown)'}, but {self._bundle.path} is {own[:12]}. Pass the "
                "bundle that was passed to triton_repository.py."
            )
        return int(config.max_batch_size)

    def _plan(self, widths: Sequence[int], max_pairs: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the pairs of each request, and the width that both of their sides are padded to.

        Args:
            widths: the number of tokens on the longer side of each pair.
            max_pairs: the most pairs of a request.
        """
        rounded = [min(-(-width // WIDTH) * WIDTH, self._tokenize.max_length) for width in widths]
        for width, alike in groupby(
            sorted(range(len(rounded)), key=rounded.__getitem__), rounded.__getitem__
        ):
            while pairs := list(islice(alike, max_pairs)):
                yield width, pairs

    async def _infer(self, arrays: Sequence[NDArray[np.int64]]) -> list[NDArray[np.float32]]:
        """Return P, R and F, each (pairs,), for the inputs of the scoring graph in their order."""
        inputs = [
            InferInput(name, list(array.shape), "INT64")
            for name, array in zip(SCORING_INPUTS, arrays, strict=True)
        ]
        for tensor, array in zip(inputs, arrays, strict=True):
            tensor.set_data_from_numpy(array)
        answer = await self._client.infer(self._name, inputs, client_timeout=TIMEOUT)
        return [answer.as_numpy(name)[:, 0] for name in SCORING_OUTPUTS]


def padded(
    sequences: Sequence[NDArray[np.int64]], width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ids of texts, (texts, width), padded with 0, and their mask."""
    mask = np.arange(width) < np.array([[len(ids)] for ids in sequences])
    ids = np.zeros(mask.shape, dtype=np.int64)
    ids[mask] = np.concatenate(sequences)
    return ids, mask.astype(np.int64)


async def print_scores(arguments: argparse.Namespace) -> None:
    """Print P, R and F of each line of two files as the server returns them."""
    with (
        arguments.candidates.open(encoding="utf-8") as candidates,
        arguments.references.open(encoding="utf-8") as references,
    ):
        async with InferenceServerClient(arguments.url) as client:
            scorer = TritonScorer(client, arguments.name, arguments.bundle, arguments.lang)
            pairs = zip_longest(candidates, references)
            while some := list(islice(pairs, LINES)):
                if None in some[-1]:
                    raise ValueError(
                        f"{arguments.candidates} and {arguments.references} differ in their "
                        "number of lines."
                    )
                for scores in zip(*await scorer.score(*zip(*some, strict=True)), strict=True):
                    print("{:.6f}\t{:.6f}\t{:.6f}".format(*scores))


def main() -> None:
    """Score the files named on the command line."""
    parser = argparse.ArgumentParser(description="Score the lines of two files on a Triton server.")
    parser.add_argument("bundle", help="the path of the bundle that is served, or its model's name")
    parser.add_argument("candidates", type=Path, help="a file of candidates, one per line")
    parser.add_argument("references", type=Path, help="a file of references, one per line")
    parser.add_argument(
        "--url", default="localhost:8001", help="the server's gRPC address (default: %(default)s)"
    )
    parser.add_argument(
        "--name", default="bertscore", help="the model's name on the server (default: %(default)s)"
    )
    parser.add_argument("--lang", help="rescale with the bundle's baseline of this language")
    try:
        asyncio.run(print_scores(parser.parse_args()))
    except (BertScoreOnnxError, InferenceServerException, ValueError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
