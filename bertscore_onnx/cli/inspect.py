"""`bertscore-onnx inspect`: describes a bundle and checks its scores."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.bundle.store import MODEL_VARIABLE
from bertscore_onnx.cli.options import TextOrJson, chosen_model, complete_model
from bertscore_onnx.cli.terminal import print_json, print_table
from bertscore_onnx.errors import BertScoreOnnxError, GoldenScoreError

if TYPE_CHECKING:
    from bertscore_onnx.bundle.bundle import Bundle
    from bertscore_onnx.bundle.manifest import Manifest


def inspect(
    bundle: Annotated[
        str | None,
        typer.Argument(
            metavar="BUNDLE",
            help=(
                "The path of a bundle, or a model's name, as for `score`.  [default: "
                f"{MODEL_VARIABLE}]"
            ),
            autocompletion=complete_model,
        ),
    ] = None,
    output_format: TextOrJson = "text",
    device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="DEVICE", help="cpu, cuda or cuda:N.  [default: cuda if available]"
        ),
    ] = None,
) -> None:
    """Describe a bundle and check its scores.

    Checks the digests of all files, and recomputes the scores that were recorded at the export. If
    somebody else has published the graph, checks that its mask hides tokens.

    Examples:
        # Describe and check a bundle in a folder, or an installed one
        bertscore-onnx inspect path/to/bundle
        bertscore-onnx inspect roberta-large
    """
    import msgspec

    from bertscore_onnx.bundle.resolver import resolve_bundle
    from bertscore_onnx.hub import local_path
    from bertscore_onnx.scoring.golden import (
        check_inputs,
        difference_by_pairs,
        golden_difference,
        golden_pipeline,
        golden_tolerance,
    )

    bundle = chosen_model(bundle)
    resolved = resolve_bundle(local_path(bundle), all_layers=None)
    try:
        with golden_pipeline(resolved.path, device=device) as pipeline:
            difference = golden_difference(pipeline)
            tolerance = golden_tolerance(pipeline)
            provider = pipeline.encoder.provider
            if resolved.manifest.is_published:
                check_inputs(pipeline)
        by_graph = None
        if resolved.manifest.has_scoring_graph:
            by_graph = difference_by_pairs(pipeline.bundle, device=device)
    except BertScoreOnnxError:
        if output_format == "text":
            print_table(_describe(resolved))
        raise

    # A failure is reported below, after the description that shows its cause.
    is_ready = max(difference, by_graph or 0) <= tolerance
    if output_format == "json":
        golden = {"largest_difference": difference, "tolerance": tolerance, "provider": provider}
        if by_graph is not None:
            golden["scoring_graph_difference"] = by_graph
        manifest = msgspec.to_builtins(resolved.manifest)
        print_json({"path": str(resolved.path), "manifest": manifest, "golden": golden})
    else:
        pairs = len(resolved.manifest.golden)
        graph = ""
        if by_graph is not None:
            graph = f"; the scoring graph's scores within {by_graph:.1e} of these"
        verdict = "Ready" if is_ready else "Not ready"
        print(f"{verdict}: {pairs} golden pairs within {difference:.1e} on {provider}{graph}\n")
        print_table(_describe(resolved))
    for scores, differs_by in (
        ("golden scores", difference),
        ("scores of the scoring graph", by_graph),
    ):
        if differs_by is not None and not differs_by <= tolerance:
            raise GoldenScoreError(
                f"The {scores} of {resolved.path} differ by {differs_by:.1e} on {provider}; at "
                f"most {tolerance:.0e} is expected. Export the model again, or try another device "
                "with --device."
            )


def _describe(bundle: "Bundle") -> list[tuple[str, str]]:
    """Return the manifest as names and values."""
    manifest = bundle.manifest
    rows = [("path", str(bundle.path)), ("model", manifest.model_id)]
    if manifest.revision:
        rows.append(("revision", manifest.revision))
    reference = "PyTorch's scores"
    if not manifest.is_compared:
        reference = "the published graph's scores; not compared with PyTorch"
    precision = f"{manifest.precision}; exported within {manifest.golden_difference:.1e}"
    max_length = "-" if manifest.max_length is None else f"{manifest.max_length} tokens"
    measured = []
    for code, baseline in sorted(manifest.unrelated_scores.items()):
        measured.append(f"{code} from {baseline.num_pairs:,} pairs")
    exported_with = [f"{package} {version}" for package, version in manifest.exported_with.items()]
    rows += [
        ("family", manifest.family),
        ("layer", _layer(manifest)),
        ("precision", f"{precision} of {reference}"),
        ("hidden size", str(manifest.hidden_size)),
        ("vocabulary", f"{manifest.vocab_size} ids"),
        ("max length", max_length),
        ("graph", f"{', '.join(manifest.inputs)} -> {manifest.output}"),
        (
            "tokenizer",
            f"{manifest.tokenizer_mode}; gives other ids for {manifest.tokenizer_differences} "
            "edge-case texts",
        ),
        *_slow_tokenizer(manifest),
        ("scoring graph", _scoring_graph(manifest)),
        ("baselines", " ".join(sorted(manifest.baselines)) or "-"),
        ("measured", ", ".join(measured) or "-"),
        ("exported with", ", ".join(exported_with)),
    ]
    for name, digest in manifest.files.items():
        rows.append((name, f"sha256 {digest}, as exported"))
    bundle_digest = f"sha256 {manifest.digest}, format version {manifest.format_version}"
    return [*rows, ("bundle", bundle_digest)]


def _layer(manifest: "Manifest") -> str:
    if not manifest.all_layers:
        return str(manifest.num_layers)
    inner = ", inner ones without the final norm" if manifest.final_norm is False else ""
    return f"all of {manifest.num_layers}{inner}"


def _slow_tokenizer(manifest: "Manifest") -> Iterator[tuple[str, str]]:
    """Yield how the ids differ from the slow tokenizer's, if both were tried."""
    from msgspec import UNSET

    slow = manifest.slow_differences
    if slow is not UNSET:
        texts = f"{slow.num_different} of {slow.num_texts} texts"
        yield "slow tokenizer", f"gives other ids for {texts}"


def _scoring_graph(manifest: "Manifest") -> str:
    from bertscore_onnx.bundle.manifest import SCORING_INPUTS, SCORING_OUTPUTS, WEIGHTS_INPUT

    if not manifest.has_scoring_graph:
        return "-"
    inputs = ", ".join((*SCORING_INPUTS, WEIGHTS_INPUT))
    return (
        f"{inputs} -> {', '.join(SCORING_OUTPUTS)}; exported within "
        f"{manifest.scoring_difference:.1e} of its scores"
    )
