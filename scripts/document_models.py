"""Writes the support matrix from the catalogue and from the results of the parity tests (`make docs`).

    python scripts/document_models.py [RESULTS]

RESULTS is what `pytest --junitxml=RESULTS tests/parity/test_tiny_families.py` writes; the largest difference of each
family goes from there into `models/bertscore_onnx_models/parity.csv`. Without it the figures there are kept, and only
`docs/models.md` is written.
"""

import csv
import re
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from bertscore_onnx.bundle import catalogue

ROOT = Path(__file__).parents[1]
PARITY = ROOT / "models" / "bertscore_onnx_models" / "parity.csv"
DOCUMENT = ROOT / "docs" / "models.md"

VARIANTS = {
    "bert-relative-key": "bert",
    "bert-relative-key-query": "bert",
    "convbert-groups": "convbert",
    "deberta-absolute": "deberta",
    "deberta-v3": "deberta-v2",
    "electra-same-size": "electra",
    "mbart-50": "mbart50",
    "xlm-languages": "xlm",
}
"""Tiny models that stand for a family of another name."""

PRECISIONS = ("fp16", "int8")
"""Those that cost something."""

REFERENCES = {"modernbert": "bert-score 0.3.13 with its fast tokenizer", "squeezebert": "transformers"}
"""What families are compared with where it is not bert-score as it is: it fails to cut SqueezeBERT's models, and its
scorer gets them cut by transformers; ModernBERT has no slow tokenizer."""

HEADER = """# Models

Written by `make docs` from the catalogue and from the results of the parity tests; do not edit.

**How tested**: a tiny random model of the family, with a tokenizer trained for it, is exported by `export_model`, and
its scores of 40 pairs (empty texts, literal special tokens, rare scripts, texts over the maximum length) are compared
with those of bert-score 0.3.13 run live with a batch size of 1, with and without idf. *Largest difference* is that of
any P, R or F. *Tokenizer* counts the export's edge-case texts that get other ids than from the original tokenizer; more
is in [tokenizers.md](tokenizers.md). It is the slow one, but ModernBERT has only a fast one: export it with
`--tokenizer-mode fast`. *fp16* and *int8* give the largest difference of F between the same pairs' scores in
that precision, on a CPU, and in fp32; a dash means that it cannot be made. Random weights show that the computation is
right, not what it costs real ones: `benchmarks/studies/precision_cost.py` measures that.

*Max length* is the most tokens the model takes; a dash stands where its positions have no bound. A bundle has the lower
maximum that the model's tokenizer may state, as that of t5-small does (512), and `bertscore-onnx inspect` shows it;
without any, texts are cut at 8,192 tokens. *Size* is that of the weights in fp32 when cut at the layer.

Other encoders of transformers can be exported too, with a warning: the graph is then compared with PyTorch on several
shapes before it is accepted.

## Families

| family | models | compared with | largest difference | tokenizer | fp16 | int8 |
|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Write the figures, if there are new ones, and the document."""
    if len(sys.argv) > 1:
        write_parity(Path(sys.argv[1]))
    DOCUMENT.write_text(document(), encoding="utf-8")


def write_parity(results: Path) -> None:
    """Take the largest figure of each family out of the results of the tests."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for case in ElementTree.parse(results).iter("testcase"):  # noqa: S314 -- our own file
        match = re.search(r"\[([^\]]+?)(?:-(?:True|False|fp16|int8))?\]$", case.get("name", ""))
        for figure in case.iter("property"):
            family = VARIANTS.get(match[1], match[1]) if match else ""
            name = figure.get("name", "")
            found[family][name] = max(found[family][name], float(figure.get("value", "nan")))
    with PARITY.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["family", "reference", "largest_difference", "tokenizer_differences", *PRECISIONS])
        for family, figures in sorted(found.items()):
            reference = REFERENCES.get(family, "bert-score 0.3.13")
            difference, ids = figures["largest_difference"], figures["tokenizer_differences"]
            costs = [f"{figures[precision]:.1e}" if precision in figures else "" for precision in PRECISIONS]
            rows.writerow([family, reference, f"{difference:.1e}", f"{ids:.0f}", *costs])


def document() -> str:
    """Return the text of `docs/models.md`."""
    entries = list(catalogue.entries().values())
    lines = [HEADER]
    for family, parity in catalogue.parity().items():
        count = sum(entry.family == family for entry in entries)
        costs = " | ".join(f"{parity.costs[name]:.1e}" if name in parity.costs else "-" for name in PRECISIONS)
        lines.append(
            f"| {family} | {count or '-'} | {parity.reference} | {parity.largest_difference:.1e} | "
            f"{parity.tokenizer_differences} | {costs} |\n"
        )
    lines.append("\n## Models of the catalogue\n\n| model | family | layer | max length | size | baselines |\n")
    lines.append("|---|---|---|---|---|---|\n")
    for entry in entries:
        languages = ", ".join(catalogue.baseline_languages(entry.name)) or "-"
        lines.append(
            f"| {entry.name} | {entry.family} | {entry.num_layers} | {entry.max_length or '-'} | {entry.size_mb} MB | "
            f"{languages} |\n"
        )
    return "".join(lines)


if __name__ == "__main__":
    main()
