"""The tokenizer of a bundle, as scoring uses it, and the counting of documents by it alone."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle, open_bundle
from bertscore_onnx.bundle.manifest import MAX_SIZE, Manifest
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.concurrency.cpus import permitted_cpus, usable_cpus
from bertscore_onnx.errors import InputError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.inputs import Reference, TextInContext, Texts, bare_texts, check_positive, read_items
from bertscore_onnx.settings import TokenizerSettings, find_bundle
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, TOKENIZER_FILE
from bertscore_onnx.text.tokenizer import LongText, TextTokenizer, check_long_text


def load_tokenizer(
    bundle: Bundle,
    long_text: LongText = "truncate",
    max_length: int | None = None,
    *,
    num_threads: int | None = None,
) -> TextTokenizer:
    """Load the tokenizer of a bundle; raise an InputError if the model cannot take texts of `max_length` tokens.

    The tokenizers package uses threads for all CPUs or none: for fewer, texts are tokenised one after the other.
    """
    check_long_text(long_text)
    check_positive("max_length", max_length)
    manifest = bundle.manifest
    tokenizer = TextTokenizer(
        bundle.path,
        spec=manifest.tokenizer_spec,
        max_length=max_length or manifest.max_length,
        empty_ids=manifest.empty_ids,
        long_text=long_text,
        in_parallel=(num_threads or usable_cpus()) >= permitted_cpus().number,
    )
    num_special, most = sum(tokenizer.num_special_tokens), manifest.max_length or MAX_SIZE
    if max_length is not None and not num_special < max_length <= most:
        raise InputError(
            f"max_length is {max_length:,}; {manifest.model_id} takes {num_special + 1} ({num_special} special tokens "
            f"and another one) to {most:,}."
        )
    if long_text == "window" and tokenizer.max_length <= num_special:
        raise InputError(
            f'long_text is "window", and a window of {tokenizer.max_length} tokens, the model\'s maximum, has room for '
            f'nothing but its {num_special} special tokens. Use "truncate".'
        )
    return tokenizer


class ContextTokenizer:
    """Tokenises texts together with what stands before them, and finds how many tokens that is.

    Of a text that is too long with its context, the context is cut at its far end.
    """

    def __init__(self, bundle: Bundle, tokenizer: TextTokenizer, *, num_threads: int | None = None) -> None:
        """Load the tokenizer of a bundle again, without a bound; texts are cut as by `tokenizer`."""
        self._tokenizer = tokenizer
        self._whole = load_tokenizer(bundle, "window", tokenizer.max_length, num_threads=num_threads)

    def __call__(self, texts: Sequence[TextInContext]) -> tuple[list[NDArray[np.int64]], list[int], list[bool]]:
        """Return the ids of each text, (tokens,), the number of those of its context, and whether it was truncated."""
        stripped = [item.text.strip() for item in texts]
        joined = [item.before + text if text else "" for item, text in zip(texts, stripped, strict=True)]
        before = list(dict.fromkeys(item.before for item in texts))
        # What a text has in common with two texts that begin differently after the same context is that context.
        sequences, _ = self._whole([*joined, *(context + word for context in before for word in ("a", "b"))])
        rest = iter(sequences[len(joined) :])
        probes = {context: (next(rest), next(rest)) for context in before}
        ids, num_context, is_truncated = [], [], []
        for item, text, sequence in zip(texts, joined, sequences, strict=False):
            common = min(_common_length(sequence, probe) for probe in probes[item.before])
            number = max(common - self._tokenizer.num_special_tokens[0], 0)
            kept, left, is_text_truncated = self._cut(sequence, number if text else 0)
            ids.append(kept)
            num_context.append(left)
            is_truncated.append(is_text_truncated)
        return ids, num_context, is_truncated

    def _cut(self, ids: NDArray[np.int64], num_context: int) -> tuple[NDArray[np.int64], int, bool]:
        """Cut the context first, and then the text unless it goes into windows."""
        before, after = self._tokenizer.num_special_tokens
        most = self._tokenizer.max_length
        cut = min(max(len(ids) - most, 0), num_context)
        ids = np.concatenate((ids[:before], ids[before + cut :]))
        is_truncated = len(ids) > most and self._tokenizer.long_text == "truncate"
        if is_truncated:
            ids = np.concatenate((ids[: most - after], ids[len(ids) - after :]))
        return ids, num_context - cut, is_truncated


def _common_length(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """Return how many ids two texts have in common at their beginning."""
    length = min(len(one), len(other))
    different = np.flatnonzero(one[:length] != other[:length])
    return int(different[0]) if len(different) else length


def tokenization_of(manifest: Manifest, tokenizer: TextTokenizer) -> str:
    """Return a name for everything that decides which ids texts get: the tokenizer, and where texts are cut.

    Bundles of one model with other layers or in other precisions have the same name.
    """
    files = [manifest.files.get(name) for name in (TOKENIZER_FILE, SENTENCEPIECE_FILE)]
    decisive = (files, manifest.tokenizer_spec, manifest.empty_ids, manifest.vocab_size)
    digest = hashlib.sha256(msgspec.json.encode(decisive)).hexdigest()[:12]
    return f"{digest}-{tokenizer.description}-{tokenizer.long_text}-{tokenizer.max_length}"


def count_documents(
    texts: Iterable[Reference],
    model_type: str | PathLike[str] | None = None,
    num_layers: int | None = None,
    *,
    lang: str | None = None,
    use_fast_tokenizer: bool | None = None,
    precision: Precision | None = None,
    long_text: LongText = "truncate",
    max_length: int | None = None,
) -> DocumentCounts:
    """Count in how many texts each token occurs, for `BERTScorer(idf=counts)`; the model is not loaded.

    Counts made with one bundle serve all bundles of that model with the same tokenizer.

    Args:
        texts: usually all references: strings, or lists of strings, duplicates included; read a few at a time and not
            kept in memory.
        model_type, num_layers, lang, use_fast_tokenizer, precision: the bundle, as for `BERTScorer`.
        long_text, max_length: where texts are cut, as for the scorer that will use the counts.

    Raises:
        InputError: something is not a string.
        UnknownModelError, UnknownLayerError, BundleError, HubError: there is no such bundle, or it cannot be used.
    """
    settings: TokenizerSettings = {
        "model_type": model_type,
        "num_layers": num_layers,
        "lang": lang,
        "use_fast_tokenizer": use_fast_tokenizer,
        "precision": precision,
    }
    bundle = find_bundle(settings, all_layers=None)
    tokenizer = _kept_tokenizer(bundle.path, bundle.manifest.digest, long_text, max_length)
    documents = (tokenizer(bare_texts(some.texts))[0] for some in read_items(texts, "texts") if isinstance(some, Texts))
    tokenization = tokenization_of(bundle.manifest, tokenizer)
    return DocumentCounts.of_documents(documents, bundle.manifest.vocab_size, tokenization)


@lru_cache(maxsize=2)
def _kept_tokenizer(folder: Path, digest: str, long_text: LongText, max_length: int | None) -> TextTokenizer:
    """Load the tokenizer of a bundle, or return the one of the call before; a replaced bundle has another digest."""
    return load_tokenizer(open_bundle(folder), long_text, max_length)
