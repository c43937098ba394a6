"""Exports models and converts tokenizers with the Python that runs it: `python -m
tests.support.other_version FILE`.

The file lists them as JSON: `{"models": [{"model", "output", "options"}], "tokenizers": [{"model",
"output", "mode"}]}` It prints a JSON object with the error of each that failed, by its output, and
writes what is recorded of a tokenizer to `facts.json` beside its files. For `"peers": [{"model",
"output", "num_layers", "pairs"}]` the bert-score of that Python scores the pairs one by one, and P,
R and F are saved in an array.
"""

import json
import sys
import warnings
from pathlib import Path

import msgspec
import numpy as np

from bertscore_onnx.errors import ExportError
from bertscore_onnx_export.model.source import Source
from bertscore_onnx_export.pipeline import export_model
from bertscore_onnx_export.quiet import quiet_libraries
from bertscore_onnx_export.tokenizer.load import load_tokenizer
from bertscore_onnx_export.tokenizer.write import write_tokenizer


def convert(model: str, output: str, mode: str) -> None:
    Path(output).mkdir(parents=True)
    facts = write_tokenizer(load_tokenizer(Source(model), mode), None, Path(output))
    (Path(output) / "facts.json").write_bytes(msgspec.json.encode(facts))


def score(model: str, output: str, num_layers: int, pairs: list[list[str]]) -> None:
    import bert_score

    scorer = bert_score.BERTScorer(model, num_layers=num_layers, device="cpu")
    np.save(output, np.stack(scorer.score(*pairs, batch_size=1)))


def main() -> None:
    jobs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    quiet_libraries()
    warnings.simplefilter("ignore")
    errors = {}
    for job in jobs.get("models", []):
        try:
            export_model(job["model"], output=Path(job["output"]), **job["options"])
        except ExportError as error:
            errors[job["output"]] = str(error)
    for job in jobs.get("tokenizers", []):
        try:
            convert(**job)
        except ExportError as error:
            errors[job["output"]] = str(error)
    for job in jobs.get("peers", []):
        try:
            score(**job)
        except Exception as error:  # of the peer, of any kind
            errors[job["output"]] = repr(error)
    sys.stdout.write(json.dumps(errors))


if __name__ == "__main__":
    main()
