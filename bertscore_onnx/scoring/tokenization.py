"""Tokenization of texts for scoring.

`load_tokenizer` loads the tokenizer of a bundle; `count_documents` needs nothing else.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Unpack

import msgspec

from bertscore_onnx.arrays import Int64Array
from bertscore_onnx.bundle.bundle import Bundle, open_bundle
from bertscore_onnx.bundle.manifest import MAX_SIZE, Manifest
from bertscore_onnx.concurrency.cpus import permitted_cpus, usable_cpus
from bertscore_onnx.errors import InputError, check_choice
from bertscore_onnx.files import StrPath
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.inputs import check_positive, read_items
from bertscore_onnx.settings import TokenizerSettings, find_bundle
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, tokenizer_file
from bertscore_onnx.text.texts import Reference
from bertscore_onnx.text.tokenizer import LongText, TextTokenizer


def load_tokenizer(
    bundle: Bundle,
    long_text: LongText = "truncate",
    max_length: int | None = None,
    *,
    num_threads: int | None = None,
) -> TextTokenizer:
    """Load the tokenizer of a bundle.

    Raise an InputError if the model cannot take texts of `max_length` tokens.

    The tokenizers package uses threads for all CPUs or none: for fewer, texts are tokenised one
    after the other.
    """
    check_choice("long_text", long_text, LongText)
    check_positive("max_length", max_length)
    manifest = bundle.manifest
    permitted, _ = permitted_cpus()
    tokenizer = TextTokenizer(
        bundle.path,
        spec=manifest.tokenizer_spec,
        max_length=max_length or manifest.max_length,
        empty_ids=manifest.empty_ids,
        long_text=long_text,
        in_parallel=(num_threads or usable_cpus()) >= permitted,
    )
    # The limits of `max_length` depend on the tokenizer's special tokens, so it is loaded first.
    num_special = sum(tokenizer.num_special_tokens)
    longest = manifest.max_length or MAX_SIZE
    if max_length is not None and not num_special < max_length <= longest:
        raise InputError(
            f"max_length is {max_length:,}; {manifest.model_id} takes {num_special + 1} "
            f"({num_special} special tokens and another one) to {longest:,}."
        )
    if long_text == "window" and tokenizer.max_length <= num_special:
        raise InputError(
            f'long_text is "window", and a window of {tokenizer.max_length} tokens, the model\'s '
            f"maximum, has room for nothing but its {num_special} special tokens. Use "
            '"truncate".'
        )
    return tokenizer


def tokenization_of(manifest: Manifest, tokenizer: TextTokenizer) -> str:
    """Return a name for everything that decides which ids texts get.

    That is the tokenizer, and where texts are cut. Bundles of one model with other layers or in
    other precisions have the same name.
    """
    names = (tokenizer_file(manifest.tokenizer_spec), SENTENCEPIECE_FILE)
    files = [manifest.files.get(name) for name in names]
    decisive = (files, manifest.tokenizer_spec, manifest.empty_ids, manifest.vocab_size)
    digest = hashlib.sha256(msgspec.json.encode(decisive)).hexdigest()[:12]
    return f"{digest}-{tokenizer.description}-{tokenizer.long_text}-{tokenizer.max_length}"


def documents_of(manifest: Manifest, sequences: Sequence[Int64Array]) -> Sequence[Int64Array]:
    """Return the ids of texts, (tokens,) each, as idf counts them.

    There are none where padding stands in for an empty text.
    """
    if not manifest.is_empty_padded:
        return sequences
    documents = list(sequences)
    for number, ids in enumerate(documents):
        if ids.tolist() == manifest.empty_ids:
            documents[number] = ids[:0]
    return documents


def count_documents(
    texts: Iterable[Reference],
    model_type: StrPath | None = None,
    /,
    **settings: Unpack[TokenizerSettings],
) -> DocumentCounts:
    """Count in how many texts each token occurs, for `BERTScorer(idf=counts)`.

    The model is not loaded.

    Counts made with one bundle serve all bundles of that model with the same tokenizer.

    Args:
        texts: usually all references: strings, or lists of strings, duplicates included; read a few
            at a time and not kept in memory.
        model_type: the bundle, as for `BERTScorer`; None for the default model of `lang`.
        settings: those of `BERTScorer` that decide which bundle is opened, and where texts are cut.

    Raises:
        InputError: something is not a string.
        UnknownModelError, UnknownLayerError, BundleError, HubError: there is no such bundle, or it
            cannot be used.
    """
    long_text = settings.get("long_text", "truncate")
    max_length = settings.get("max_length")
    if model_type is not None:
        settings["model_type"] = model_type
    bundle = find_bundle(settings, all_layers=None)
    tokenizer = _kept_tokenizer(bundle.path, bundle.manifest.digest, long_text, max_length)

    def documents() -> Iterator[Sequence[Int64Array]]:
        for side in read_items(texts, "texts"):
            ids = side.documents(lambda bare: tokenizer(bare)[0])
            yield documents_of(bundle.manifest, ids)

    tokenization = tokenization_of(bundle.manifest, tokenizer)
    return DocumentCounts.of_documents(documents(), bundle.manifest.vocab_size, tokenization)


@lru_cache(maxsize=2)
def _kept_tokenizer(
    folder: Path, digest: str, long_text: LongText, max_length: int | None
) -> TextTokenizer:
    """Load the tokenizer of a bundle, or return the one of the call before.

    A replaced bundle has another digest.
    """
    return load_tokenizer(open_bundle(folder), long_text, max_length)
