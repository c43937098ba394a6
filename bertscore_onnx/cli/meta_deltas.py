"""The option `--deltas` of `bertscore-onnx meta`: how often people agree with a difference of a size."""

from collections.abc import Sequence

from bertscore_onnx.cli.meta_options import MetaOptions
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.evaluation.deltas import fit_deltas
from bertscore_onnx.evaluation.judged_systems import JudgedSystems
from bertscore_onnx.files import write_whole


def write_deltas(options: MetaOptions, systems: Sequence[JudgedSystems]) -> None:
    """Write the file if one is given; with the format text, print the table too, else its warnings."""
    if options.deltas is None:
        return
    deltas = fit_deltas(systems)
    write_whole(options.deltas, deltas.to_json())
    if options.output_format == "text":
        print(f"\n{deltas.table()}", flush=True)
        return
    for warning in deltas.warnings:
        echo(warning)
