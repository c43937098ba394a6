"""`bertscore-onnx serve`: scores over HTTP."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertscore_onnx.bundle.store import MODEL_VARIABLE
from bertscore_onnx.cli.options import chosen_model, shared_options
from bertscore_onnx.cli.specs import fields_of, single
from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx_service.http.limits import Limits

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx_service.http.models import CountDocuments


_DEFAULTS: Mapping[str, int | float] = asdict(Limits())
_SHOWN_DEFAULTS = " ".join(f"{name}={limit:.0f}" for name, limit in _DEFAULTS.items())
_THREADS = "One batch per CPU thread, or all threads on one batch"
_ACCESS_ADVICE = "Add --api-key-file, or --allow-anonymous if intended."


class _LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@shared_options(
    "device",
    "nthreads",
    "precision",
    "long_text",
    "max_length",
    "allow_fp32_baseline",
    "matching",
    needs_model=False,
)
def serve(
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--model",
            metavar="[NAME=]MODEL",
            help="A model's name, the path of a bundle, or hf://ORG/REPO; repeatable. "
            "Requests select it by NAME.  "
            f"[default: {MODEL_VARIABLE}]",
        ),
    ] = None,
    settings: "ScorerSettings",
    host: Annotated[
        str,
        typer.Option("--host", metavar="HOST", help="The address to listen on."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", min=0, max=65535, help="The port; 0 for any."),
    ] = 8080,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            "--api-key-file",
            metavar="FILE",
            help="API keys of 16 characters or more, one per line; requests need one of them.",
            rich_help_panel="Access and limits",
        ),
    ] = None,
    allow_anonymous: Annotated[
        bool,
        typer.Option(
            "--allow-anonymous",
            help="Accept requests from other machines without a key.",
            rich_help_panel="Access and limits",
        ),
    ] = False,
    idf: Annotated[
        list[str] | None,
        typer.Option(
            "--idf",
            metavar="NAME=FILE",
            help="An idf table, from sentences, one per line, or from document counts; repeatable.",
        ),
    ] = None,
    optimize_for: Annotated[
        Literal["throughput", "latency"],
        typer.Option(
            "--optimize-for",
            help=f"{_THREADS}, which is faster for few requests.",
        ),
    ] = "throughput",
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limits",
            metavar="NAME=N...",
            help="Limits of the server, of which docs/server.md says more; times are in seconds.  "
            f"[default: {_SHOWN_DEFAULTS}]",
            rich_help_panel="Access and limits",
        ),
    ] = None,
    log_format: Annotated[
        _LogFormat, typer.Option("--log-format", help="Format of log lines, on standard error.")
    ] = _LogFormat.TEXT,
) -> None:
    """Serve scores over HTTP.

    Listens only on this machine, unless --host gives another address. SIGTERM and Ctrl-C stop the
    server, after the requests in progress.

    POST /v1/score takes JSON such as
    {"pairs": [{"candidate": "A cat.", "reference": "A dog."}]}, and a key in the header
    Authorization: Bearer KEY. The page /docs describes all requests.

    Examples:
        # Serve a model on this machine
        bertscore-onnx serve -m path/to/bundle
        # Serve it to other machines, for requests with an API key
        bertscore-onnx serve -m roberta-large --host 0.0.0.0 --api-key-file keys.txt
    """
    if api_key_file is None and not (allow_anonymous or _is_loopback(host)):
        raise typer.BadParameter(
            f"other machines could use {host} without a key. {_ACCESS_ADVICE}",
            param_hint="--host",
        )
    with needs_extra("server,cpu", "Serving"):
        from bertscore_onnx_service.http.app import ApiKeys, create_app
        from bertscore_onnx_service.http.models import Models
        from bertscore_onnx_service.http.request_log import configure_logging
        from bertscore_onnx_service.http.run import end_at_signals, run
    models_to_serve = model or [chosen_model(None)]
    configure_logging(log_format.value)
    end_at_signals()
    checked = _limits(limits or ())
    keys = None
    if api_key_file is not None:
        keys = ApiKeys.read(api_key_file)

    settings["optimize_for"] = optimize_for
    tables = _idf_tables(idf or [], settings["long_text"], settings["max_length"])
    with Models.load(models_to_serve, tables, checked, settings) as models:
        any_host = keys is not None or not _is_loopback(host)
        app = create_app(models, checked, keys=keys, any_host=any_host)
        run(app, models, checked, host=host, port=port)


def _limits(specs: Sequence[str]) -> Limits:
    """Return the limits, with given values in place of defaults."""
    fields = fields_of(specs, _DEFAULTS, "--limits")
    values = {name: single(name, texts, "--limits") for name, texts in fields.items()}
    limits: dict[str, Any] = {}
    for name, value in values.items():
        limits[name] = _number(name, value, type(_DEFAULTS[name]))
    return Limits(**limits)


def _number(name: str, value: str, kind: type[int] | type[float]) -> int | float:
    """Return the value of a limit as a number of its kind."""
    try:
        return kind(value)
    except ValueError as error:
        expected = "a whole number" if kind is int else "a number"
        message = f"{name} is {value!r}; expected {expected}."
        raise typer.BadParameter(message, param_hint="--limits") from error


def _is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _idf_tables(
    specs: Sequence[str], long_text: Literal["truncate", "window"], max_length: int | None
) -> "dict[str, CountDocuments]":
    """Return functions that count the documents of each table.

    Tables are given as NAME=FILE. A file holds document counts, or sentences, or is a table with a
    column of references.
    """
    from bertscore_onnx.matching.document_counts import DocumentCounts
    from bertscore_onnx.scoring.tokenization import count_documents

    def counted(texts: Sequence[str]) -> "CountDocuments":
        return lambda bundle: count_documents(
            texts,
            bundle.path,
            long_text=long_text,
            max_length=max_length,
        )

    def loaded(counts: DocumentCounts) -> "CountDocuments":
        return lambda bundle: counts

    tables: dict[str, CountDocuments] = {}
    for spec in specs:
        name, equals, file = spec.partition("=")
        if not (name and equals and file) or name in tables:
            raise InputError(f"--idf {spec!r} is not in the form NAME=FILE, each NAME once.")
        if DocumentCounts.are_saved_in(file):
            tables[name] = loaded(DocumentCounts.load(file))
        else:
            tables[name] = counted(_references(file))
    return tables


def _references(file: str) -> list[str]:
    """Return all texts of a file of references."""
    from bertscore_onnx.cli.inputs import InputFile, read_rows, reference_columns

    texts: list[str] = []
    for row in read_rows([InputFile(file, reference_columns())]):
        texts += row
    return texts
