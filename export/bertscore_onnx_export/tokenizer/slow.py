"""Compares the tokenizer of a bundle in the fast mode with the slow one, whose ids are bert-score's default."""

from pathlib import Path

from bertscore_onnx.bundle.manifest import SlowDifferences
from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.tokenizer import TextTokenizer
from bertscore_onnx_export.model.source import Source, loading
from bertscore_onnx_export.tokenizer.write import TokenizerFacts, different_texts, load_tokenizer
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, PLAIN_TEXTS

EXAMPLES = 5
"""How many texts of other ids are kept."""


def compare_with_slow(source: Source, facts: TokenizerFacts, folder: Path) -> SlowDifferences | None:
    """Encode the sample texts by both tokenizers.

    Args:
        source: where the model comes from.
        facts: what `write_tokenizer` returned of its fast tokenizer.
        folder: where that wrote `tokenizer.json`.

    Returns:
        Where the ids differ; None where the model has no slow tokenizer that works.
    """
    texts = [*PLAIN_TEXTS, *EDGE_CASE_TEXTS]
    written = TextTokenizer(folder, spec=None, max_length=facts.max_length, empty_ids=facts.empty_ids)
    try:
        slow = load_tokenizer(source, "slow")
        with loading("tokenizer", source):
            different = different_texts(slow, written, facts.max_length, texts)
    except ExportError:
        return None
    return SlowDifferences(len(texts), len(different), different[:EXAMPLES])
