"""Writes scores into a folder as mt-metrics-eval has them: metric-scores/LP/METRIC-REFERENCE.{seg,sys}.score."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer

from bertscore_onnx.cli.messages import tell
from bertscore_onnx.cli.tasks.inputs.systems import is_eval_set, own_name
from bertscore_onnx.cli.tasks.options import MetaOptions
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.eval_set import score_files
from bertscore_onnx.evaluation.judged_systems import JudgedSystems
from bertscore_onnx.files import unwritable, write_whole

ALL_REFERENCES = "all"
"""What a name ends in that does not say its reference."""


def check_folder(options: MetaOptions) -> None:
    """Check that scores can be written, before work is put into them; nothing is written yet.

    Raises:
        typer.BadParameter: there would be none to write.
        InputError: the folder cannot be written to.
    """
    if options.output is None:
        return
    if is_eval_set(options) and not options.metrics:
        raise typer.BadParameter(
            "there is nothing to write, for all scores are read from files. Add --model or --metric.",
            param_hint="--output",
        )
    folder = Path(options.output).absolute()
    there = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"Cannot write into the folder {options.output!r}: {there} is no folder that may be written to. Name "
            "another with --output."
        )


def write_scores(options: MetaOptions, language_pairs: Sequence[JudgedSystems]) -> None:
    """Write the scores of columns and of texts; each file in one step.

    Raises:
        InputError: a file cannot be written.
    """
    if options.output is None:
        return
    folder = Path(options.output)
    contents: dict[Path, str] = {}
    for judged in language_pairs:
        for name, content in _files(options, judged).items():
            contents[folder / "metric-scores" / judged.language_pair / name] = content
    for path, content in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path.parent, error) from error
        if path.exists() and path not in path.parent.iterdir():
            raise InputError(f"Cannot write {path}: a file is there whose name differs in case alone. Move it away.")
        write_whole(str(path), content)
    if not options.quiet:
        tell(f"Wrote {len(contents)} files of scores into {folder / 'metric-scores'}.")


def _files(options: MetaOptions, judged: JudgedSystems) -> dict[str, str]:
    """Return the files of a language pair by name; of an EvalSet, not those of scores that were read."""
    files: dict[str, str] = {}
    chosen = {own_name(one, judged) for one in options.metrics} if is_eval_set(options) else judged.metrics
    for name in chosen:
        scores = judged.metrics[name]
        is_scored = ~np.isnan(scores.system) if scores.system is not None else np.zeros(len(judged.systems), bool)
        if scores.segment is not None and (missing := int(np.isnan(scores.segment[is_scored]).sum())):
            warnings.warn(
                f"{judged.language_pair}: {name} has no score of {missing} outputs, and mt-metrics-eval expects one of "
                "each.",
                UserWarning,
                stacklevel=2,
            )
        systems = [system for system, has_any in zip(judged.systems, is_scored, strict=True) if has_any]
        chosen_rows = {
            level: None if of_level is None else of_level[is_scored]
            for level, of_level in (("sys", scores.system), ("seg", scores.segment))
        }
        files |= score_files(_with_reference(name), systems, chosen_rows)
    return files


def _with_reference(name: str) -> str:
    _, hyphen, reference = name.rpartition("-")
    has_one = hyphen and (reference.startswith("ref") or reference in ("src", ALL_REFERENCES))
    return name if has_one else f"{name}-{ALL_REFERENCES}"
