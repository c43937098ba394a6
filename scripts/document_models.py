"""Writes the page of models from the catalogue and the results of the parity tests (`make docs`).

    python scripts/document_models.py [RESULTS …]

RESULTS are the files that `pytest --junitxml=RESULTS` writes of the tests that `make docs` runs,
with transformers 4.57 and with 5. The largest differences of each family in them are copied into
`models/bertscore_onnx_models/parity.csv`; those of other families are kept there. Then
`docs/models.md` is written.
"""

import csv
import re
import sys
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from bertscore_onnx.bundle import catalogue

ROOT = Path(__file__).parents[1]
PARITY = ROOT / "models" / "bertscore_onnx_models" / "parity.csv"
CATALOGUE = PARITY.with_name("catalogue.toml")
DOCUMENT = ROOT / "docs" / "models.md"

VARIANTS = {
    "bert-relative-key": "bert",
    "bert-relative-key-query": "bert",
    "convbert-groups": "convbert",
    "deberta-absolute": "deberta",
    "deberta-v3": "deberta-v2",
    "electra-same-size": "electra",
    "embeddinggemma": "gemma3",
    "mbart-50": "mbart50",
    "mmbert": "modernbert",
    "qwen3-embedding": "qwen3",
    "xlm-languages": "xlm",
}
"""Tiny models whose name is not that of their family."""

PRECISIONS = ("fp16", "int8")
"""The precisions whose scores differ from fp32."""

REFERENCES = {
    **dict.fromkeys(("gemma3", "modernbert", "qwen3"), "bert-score 0.3.13 with its fast tokenizer"),
    **dict.fromkeys(
        ("embedding-gemma2", "eurobert", "gte", "jina-embeddings-v3"), "transformers 5"
    ),
    **dict.fromkeys(("nomic-bert", "ultrabert"), "transformers 5"),
    "squeezebert": "transformers",
}
"""The families that are not compared with plain bert-score. It fails to cut SqueezeBERT's models,
so its scorer gets models cut by transformers; some have no slow tokenizer that a bundle reproduces,
and some only transformers 5 has."""

CASE = r"\[([^\]]+?)(?:-seed\d)?(?:-(?:True|False|(?:fp32|fp16|int8)(?:-[0-9]+)?))?\]$"
"""The end of a test's name: a model, and what else the test depends on."""

HEADER = """# Models

<!-- Written by `make docs` from the catalogue and from the results of the parity tests; do not edit. -->
<!-- keywords: german, french, chinese, arabic, languages, language, multilingual, which model -->

**To reproduce the numbers of a paper, take the model that it names**, for English mostly `roberta-large`, bert-score's
default, and a GPU for large sets. **On a CPU, or in a service**, all-mpnet-base-v2 or all-MiniLM-L6-v2 may do: [Which
encoder?](which_encoder.md) has their agreement with people, speed and size. **For German, French, Arabic and most
other languages**, `bert-base-multilingual-cased` is bert-score's default. **For texts over 512 tokens** take a model
with a longer maximum, or [windows](long_texts.md).

## By language, size and speed

bert-score's defaults, its models with a [baseline](idf_and_rescaling.md#rescaling), and ModernBERT at the layers that
modern-bert-score uses. In each language the least costly come first.

- *Cost*: the products of a token with the weights of its layers, relative to roberta-large.
- *MB*: the weights in fp32 after cutting the model at the layer.
- *Tokens*: the most that the model takes, or its tokenizer if that states less. A dash is no bound: texts are truncated
  at 8,192 tokens.

| language | model | layer | tokens | MB | cost | baselines |
|---|---|---|---|---|---|---|
"""

LANGUAGES = {
    "en": "English",
    "en-sci": "English, scientific",
    "zh": "Chinese",
    "tr": "Turkish",
    "many": "many",
}
"""Names of the languages of the catalogue, in the order of the table."""

UNIT = "roberta-large"
"""The model whose cost is 1."""

MULTILINGUAL = "cs, de, en, es, et, fi, fr, it, lv, pt"
"""The baselines that are written as `ten`."""

OTHERS = """
*Ten* baselines are for {multilingual}.

bert-score lists {others} more models, which `bertscore-onnx models` prints with their layers, sizes and maxima.

[Other encoders](export.md#encoders-of-today) of transformers can be exported too, with a layer that you name, and a
warning if their family was not tested.
"""

FAMILIES = """
## Families

These families are tested:

{families}.

A tiny random model of each family, with a tokenizer trained for it, is exported. Its scores of 40 pairs (empty texts,
literal special tokens, rare scripts, texts over the maximum length) are compared with those of bert-score 0.3.13, run
live with a batch size of 1, with and without idf. P, R and F in fp32 differ by at most {largest:.1e}; F moves in fp16
by at most {fp16:.1e}, in int8 by {int8:.1e}. [Token ids](differences.md#tokenizers) are equal. SqueezeBERT is compared
with transformers; ModernBERT, Gemma 3 and Qwen3 with bert-score's fast tokenizer; and the families that only
transformers 5 has with bert-score's formulas on transformers' vectors. Bort cannot be exported in int8.

Two families were also compared with real weights: BERT (all-MiniLM-L6-v2) and MPNet (all-mpnet-base-v2), in [Export a
model](export.md#reduced-precision) and [Which encoder?](which_encoder.md).
"""


def main() -> None:
    """Write the figures, if results are given, and the document."""
    if len(sys.argv) > 1:
        write_parity(map(Path, sys.argv[1:]))
    DOCUMENT.write_text(document(), encoding="utf-8")


def write_parity(results: Iterable[Path]) -> None:
    """Write the largest figure of each family in the test results to `parity.csv`."""
    largest: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for case in (case for file in results for case in ElementTree.parse(file).iter("testcase")):  # noqa: S314 -- ours
        match = re.search(CASE, case.get("name", ""))
        for figure in case.iter("property"):
            family = VARIANTS.get(match[1], match[1]) if match else ""
            name = figure.get("name", "")
            largest[family][name] = max(largest[family][name], float(figure.get("value", "nan")))
    with PARITY.open(encoding="utf-8", newline="") as file:
        header, *kept = csv.reader(file)
    rows = {row[0]: row for row in kept}
    for family, figures in largest.items():
        reference = REFERENCES.get(family, "bert-score 0.3.13")
        difference, ids = figures["largest_difference"], figures["tokenizer_differences"]
        costs = [
            f"{figures[precision]:.1e}" if precision in figures else "" for precision in PRECISIONS
        ]
        batch = f"{figures['batch_difference']:.1e}" if "batch_difference" in figures else ""
        rows[family] = [family, reference, f"{difference:.1e}", f"{ids:.0f}", *costs, batch]
    with PARITY.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [header, *(rows[family] for family in sorted(rows))]
        )


def read_parity() -> list[dict[str, str]]:
    """Return the figures of each family."""
    with PARITY.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def lines_of(names: Iterable[str]) -> str:
    """Return names as lines of a paragraph."""
    return textwrap.fill(", ".join(names), 120, break_long_words=False, break_on_hyphens=False)


def document() -> str:
    """Return the text of `docs/models.md`."""
    facts = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))["models"]
    shown = {name: fact for name, fact in facts.items() if "language" in fact}
    order = [*LANGUAGES]
    lines = [HEADER]
    for name, fact in sorted(
        shown.items(), key=lambda item: (order.index(item[1]["language"]), item[1]["products"])
    ):
        languages = ", ".join(catalogue.baseline_languages(name)) or "-"
        cost = fact["products"] / facts[UNIT]["products"]
        cells = (
            LANGUAGES[fact["language"]],
            name,
            fact["layer"],
            fact.get("max_length", "-"),
            fact["size"],
            f"{cost:.2f}",
            languages.replace(f"{MULTILINGUAL}, zh", "ten, zh").replace(MULTILINGUAL, "ten"),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |\n")
    others = len(facts) - len(shown)
    lines.append(OTHERS.format(multilingual=MULTILINGUAL, others=others))
    rows = read_parity()
    largest = {
        name: max(float(row[name] or 0) for row in rows)
        for name in ("largest_difference", *PRECISIONS)
    }
    families = lines_of(row["family"] for row in rows)
    lines.append(
        FAMILIES.format(families=families, largest=largest.pop("largest_difference"), **largest)
    )
    return "".join(lines)


if __name__ == "__main__":
    main()
