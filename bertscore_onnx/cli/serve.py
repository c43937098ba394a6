"""`bertscore-onnx serve`: scores over HTTP."""

import ipaddress
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx.server.limits import Limits

if TYPE_CHECKING:
    from bertscore_onnx.bundle.bundle import Bundle
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.server.models import CountDocuments


_DEFAULTS = Limits()


class _LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def serve(
    model: Annotated[
        list[str],
        typer.Option(
            "-m",
            "--model",
            metavar="[NAME=]MODEL",
            help="A model's name, or the path of a bundle; again for more. Requests call it NAME.",
        ),
    ],
    host: Annotated[str, typer.Option(metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="The port; 0 for any.")] = 8080,
    api_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keys, one a line, of which a request must give one.")
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Listen to other machines without keys.")
    ] = False,
    idf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="An idf table: from sentences, one a line, or from document counts. Repeatable.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="DEVICE", help="cpu, cuda, cuda:N or openvino.  [default: cuda where it is offered]"),
    ] = None,
    nthreads: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="CPU threads.  [default: all this process may use]")
    ] = None,
    optimize_for: Annotated[
        Literal["throughput", "latency"],
        typer.Option(help="A batch of texts on each CPU thread, or one batch on all threads: fast where few ask."),
    ] = "throughput",
    precision: Annotated[
        Precision | None,
        typer.Option(
            help="Take the bundles exported in this precision.  [default: a bundle's own; fp32 for a model's name]"
        ),
    ] = None,
    long_text: Annotated[
        Literal["truncate", "window"],
        typer.Option(help="What becomes of texts beyond a model's maximum: truncated, or encoded in windows."),
    ] = "truncate",
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="The most tokens of a text, or of a window of it.  [default: the model's own maximum]",
        ),
    ] = None,
    allow_fp32_baseline: Annotated[
        bool, typer.Option("--allow-fp32-baseline", help="Rescale fp16 and int8 scores with baselines of fp32.")
    ] = False,
    max_requests: Annotated[int, typer.Option(metavar="N", min=1, help="Requests in progress at a time.")] = (
        _DEFAULTS.max_requests
    ),
    max_queue: Annotated[int, typer.Option(metavar="N", min=1, help="Chunks of requests waiting for a model.")] = (
        _DEFAULTS.max_queue
    ),
    max_batch_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Tokens scored together.")] = (
        _DEFAULTS.max_batch_tokens
    ),
    max_pairs: Annotated[int, typer.Option(metavar="N", min=1, help="Pairs in a body.")] = _DEFAULTS.max_pairs,
    max_body: Annotated[int, typer.Option(metavar="BYTES", min=1, help="Size of a body, or of a streamed line.")] = (
        _DEFAULTS.max_body
    ),
    max_bytes: Annotated[int, typer.Option(metavar="BYTES", min=1, help="Size of all bodies in progress.")] = (
        _DEFAULTS.max_bytes
    ),
    read_timeout: Annotated[float, typer.Option(metavar="SECONDS", help="For a body to come in.")] = (
        _DEFAULTS.read_timeout
    ),
    deadline: Annotated[float, typer.Option(metavar="SECONDS", help="For scores, waiting included.")] = (
        _DEFAULTS.deadline
    ),
    drain: Annotated[float, typer.Option(metavar="SECONDS", help="For requests in progress at SIGTERM.")] = (
        _DEFAULTS.drain
    ),
    log_format: Annotated[_LogFormat, typer.Option(help="The form of log lines, on standard error.")] = _LogFormat.TEXT,
) -> None:
    """Serve scores over HTTP.

    Listens on this machine alone unless --host says otherwise. SIGTERM lets requests in progress finish.
    """
    if api_key_file is None and not (allow_anonymous or _is_loopback(host)):
        raise typer.BadParameter(
            f"others could reach {host} without a key. Give --api-key-file, or --allow-anonymous if that is meant.",
            param_hint="--host",
        )
    with needs_extra("server,cpu", "Serving"):
        from bertscore_onnx.server.app import create_app
        from bertscore_onnx.server.middleware import ApiKeys
        from bertscore_onnx.server.models import Models
        from bertscore_onnx.server.request_log import configure_logging
        from bertscore_onnx.server.run import end_at_signals, run
    configure_logging(log_format.value)
    end_at_signals()
    limits = Limits(
        max_requests=max_requests,
        max_queue=max_queue,
        max_batch_tokens=max_batch_tokens,
        max_pairs=max_pairs,
        max_body=max_body,
        max_bytes=max_bytes,
        read_timeout=read_timeout,
        deadline=deadline,
        drain=drain,
    )
    keys = None if api_key_file is None else ApiKeys.read(api_key_file)

    def load(bundle: "Bundle") -> "BERTScorer":
        from bertscore_onnx.scorer import BERTScorer

        return BERTScorer(
            bundle.path,
            device=device,
            nthreads=nthreads,
            long_text=long_text,
            max_length=max_length,
            optimize_for=optimize_for,
        )

    with Models.load(
        model,
        _idf_tables(idf or [], long_text, max_length),
        limits,
        load,
        precision=precision,
        allow_fp32_baseline=allow_fp32_baseline,
    ) as models:
        app = create_app(models, limits, keys=keys, any_host=keys is not None or not _is_loopback(host))
        run(app, models, limits, host=host, port=port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _idf_tables(
    specs: Sequence[str], long_text: Literal["truncate", "window"], max_length: int | None
) -> "dict[str, CountDocuments]":
    """Return what counts the documents of each table, given as NAME=FILE.

    A file of document counts is read here; of another, its sentences, or of one with columns its references.
    """
    from bertscore_onnx.matching.document_counts import DocumentCounts
    from bertscore_onnx.scoring.tokenization import count_documents

    def counted(texts: Sequence[str]) -> "CountDocuments":
        return lambda bundle: count_documents(texts, bundle.path, long_text=long_text, max_length=max_length)

    def loaded(counts: DocumentCounts) -> "CountDocuments":
        return lambda bundle: counts

    tables: dict[str, CountDocuments] = {}
    for spec in specs:
        name, equals, file = spec.partition("=")
        if not (name and equals and file) or name in tables:
            raise InputError(f"--idf {spec!r} is not in the form NAME=FILE, each NAME once.")
        is_counts = DocumentCounts.are_saved_in(file)
        tables[name] = loaded(DocumentCounts.load(file)) if is_counts else counted(_references(file))
    return tables


def _references(file: str) -> list[str]:
    from bertscore_onnx.cli.inputs import InputFile, open_input, reference_columns
    from bertscore_onnx.tables.sources import format_of

    with open_input(InputFile(file, format_of(file), columns=reference_columns())) as opened:
        return [text for row in opened.rows() for text in row]
