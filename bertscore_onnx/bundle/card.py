"""The model card of bundles, `README.md`.

It has the facts of their manifests for readers and for the hub.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.manifest import SCORING_FILE, Manifest
from bertscore_onnx.scores import Signature
from bertscore_onnx.text.spec import SLOW_TOKENIZER_FILE

CARD = "README.md"
CARD_MARK = "<!-- bertscore-onnx writes this card. Delete this line to keep what you change. -->"

_LICENSE = ("license", "license_name", "license_link")
_MODEL_ON_HUB = re.compile(r"([\w.-]+/)?[\w.-]+", re.ASCII)

_CITATION = """@inproceedings{zhang2020bertscore,
  title     = {{BERTScore}: Evaluating Text Generation with {BERT}},
  author    = {Tianyi Zhang and Varsha Kishore and Felix Wu and Kilian Q. Weinberger and \
Yoav Artzi},
  booktitle = {International Conference on Learning Representations},
  year      = {2020},
  url       = {https://openreview.net/forum?id=SkeHuCVFDr}
}"""


def model_card(
    bundles: Mapping[str, Manifest], license_fields: Mapping[str, str] | None = None
) -> str:
    """Return the card of the bundles in a folder or repository.

    Args:
        bundles: at least one, by the names to load them by.
        license_fields: of the base model's card, as `read_license` returns them.
    """
    name, first = next(iter(bundles.items()))
    lines = [
        "---",
        *_front_matter(first, license_fields or {}),
        "---",
        CARD_MARK,
        "",
        f"# BERTScore with {_code(first.model_id)} on ONNX Runtime",
        "",
        "Computes the P, R and F of BERTScore without PyTorch, by the package `bertscore-onnx`:",
        "",
        "```python",
        "from bertscore_onnx import BERTScorer",
        "",
        f"with BERTScorer({json.dumps(name, ensure_ascii=False)}) as scorer:",
        '    P, R, F = scorer.score(["The cat sat on the mat."], ["A cat was sitting on the '
        'mat."])',
        "    print(F, scorer.signature)",
        "```",
    ]
    for name, manifest in bundles.items():
        lines += ["", f"## {_code(name)}", "", "| | |", "|---|---|"]
        lines += [f"| {field} | {value} |" for field, value in _rows(manifest)]
    return "\n".join([*lines, "", "## Citation", "", "```bibtex", _CITATION, "```", ""])


def updated_card(card: str, old: Manifest, new: Manifest) -> str:
    """Return the card of a bundle, updated after a change of its manifest."""
    for (field, before), (_, after) in zip(_rows(old), _rows(new), strict=True):
        card = card.replace(f"| {field} | {before} |", f"| {field} | {after} |")
    return card


def read_license(card: Path) -> dict[str, str]:
    """Return the license fields of a model card.

    Empty without a card or a license.
    """
    # a dependency of both the extra `hub` and the extra `export`
    from huggingface_hub import metadata_load

    try:
        metadata = metadata_load(card) or {}
    except Exception:  # a card by somebody else may contain anything
        return {}
    if "license" not in metadata:
        return {}
    return {field: metadata[field] for field in _LICENSE if isinstance(metadata.get(field), str)}


def _front_matter(manifest: Manifest, license_fields: Mapping[str, str]) -> Iterator[str]:
    """Yield lines of YAML, in which a JSON string is a string too."""
    yield "library_name: bertscore-onnx"
    is_on_hub = manifest.revision is not None or catalogue.find(manifest.model_id) is not None
    if is_on_hub and _MODEL_ON_HUB.fullmatch(manifest.model_id):
        yield f"base_model: {json.dumps(manifest.model_id)}"
    for field in _LICENSE:
        if field in license_fields:
            yield f"{field}: {json.dumps(license_fields[field], ensure_ascii=False)}"
    yield "tags: [bertscore, evaluation, onnx]"


def _rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the facts of a manifest, as names and values of a table."""
    base_model = _code(manifest.model_id)
    if manifest.revision:
        base_model += f" at {_code(manifest.revision)}"
    yield "base model", base_model
    yield "layer", _layer(manifest)
    yield "precision", manifest.precision
    original = "PyTorch"  # which gave the golden scores
    measured = f"over P, R and F of {len(manifest.golden)} pairs, measured at the export"
    if not manifest.is_compared:
        original = "the published graph"
        measured += "; not compared with PyTorch"
    yield f"largest difference from {original}", f"{manifest.golden_difference:.1e}, {measured}"
    yield (
        "tokenizer",
        f"the ids of the {manifest.tokenizer_mode} tokenizer of transformers; "
        f"{manifest.tokenizer_differences} of the edge-case texts tried at the export get other "
        "ids",
    )
    slow = manifest.slow_differences
    if slow is not msgspec.UNSET:
        yield (
            "slow tokenizer",
            f"gives {slow.num_different} of {slow.num_texts} texts tried at the export other ids",
        )
    yield "scoring graph", _scoring_graph(manifest)
    yield "languages", _languages(manifest)
    yield (
        "longest text",
        "no bound" if manifest.max_length is None else f"{manifest.max_length} tokens",
    )
    yield "baselines", ", ".join(sorted(manifest.baselines)) or "none"
    yield "signature", _code(str(_signature(manifest)).replace("|", "\\|"))
    yield "bundle", f"sha256 {_code(manifest.digest)}, format version {manifest.format_version}"
    for name, digest in manifest.files.items():
        yield _code(name), f"sha256 {_code(digest)}"
    packages = [f"{package} {version}" for package, version in manifest.exported_with.items()]
    yield "exported with", ", ".join(packages)


def _scoring_graph(manifest: Manifest) -> str:
    if not manifest.has_scoring_graph:
        return "none"
    graph = f"{_code(SCORING_FILE)}, from token ids to P, R and F"
    if manifest.scoring_difference is msgspec.UNSET:
        return graph
    return (
        f"{graph}; at most {manifest.scoring_difference:.1e} from those of the package, measured "
        "at the export"
    )


def _languages(manifest: Manifest) -> str:
    """Return the programming languages in which the bundle can be used."""
    if not manifest.has_scoring_graph:
        return "Python, by the package"
    if manifest.tokenizer_mode == "slow":
        return (
            f"Python, by the package: the ids follow rules that {_code(SLOW_TOKENIZER_FILE)} "
            "cannot express"
        )
    return "any with ONNX Runtime and Hugging Face's tokenizers (Python, JavaScript, Rust, …)"


def _layer(manifest: Manifest) -> str:
    if manifest.all_layers:
        return f"all, 0 to {manifest.num_layers}, to compare them"
    entry = catalogue.find(manifest.model_id)
    if entry is not None and entry.num_layers == manifest.num_layers:
        if entry.source != catalogue.BERT_SCORE:
            return f"{manifest.num_layers}, which {entry.source} uses for this model"
        return (
            f"{manifest.num_layers}, which bert-score chose for this model by correlation with "
            "human judgments"
        )
    return f"{manifest.num_layers}, chosen at the export"


def _signature(manifest: Manifest) -> Signature:
    """Return the signature of a scorer made with the bundle alone."""
    spec = manifest.tokenizer_spec
    tokenizer: str = manifest.tokenizer_mode
    if spec is not None and spec.sentencepiece is not None:
        tokenizer += f"+sentencepiece-{manifest.exported_with.get('sentencepiece')}"
    return Signature(
        model=manifest.model_id,
        layer="all" if manifest.all_layers else manifest.num_layers,
        idf="no",
        rescale="no",
        tokenizer=tokenizer,
        long_text="truncate",
        max_length=None,
        precision=manifest.precision,
        bundle=manifest.digest[:12],
    )


def _code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"
