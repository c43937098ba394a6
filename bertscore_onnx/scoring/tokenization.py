"""The tokenizer of a bundle, as scoring uses it."""

import hashlib
from collections.abc import Iterable
from os import PathLike

import msgspec

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import MAX_SIZE, Manifest
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.concurrency.cpus import permitted_cpus, usable_cpus
from bertscore_onnx.errors import InputError
from bertscore_onnx.hub import local_path
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.inputs import Reference, Texts, check_positive, read_items
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, TOKENIZER_FILE
from bertscore_onnx.text.tokenizer import LongText, TextTokenizer, check_long_text


def load_tokenizer(
    bundle: Bundle,
    long_text: LongText = "truncate",
    max_length: int | None = None,
    *,
    num_threads: int | None = None,
) -> TextTokenizer:
    """Load the tokenizer of a bundle.

    Args:
        bundle: the bundle.
        long_text: what becomes of texts that are longer than the maximum.
        max_length: the most tokens of a text, special tokens included; None for the model's own maximum.
        num_threads: CPU threads to use; None for all that this process may keep busy. The tokenizers package has
            threads for all CPUs or none: for fewer, texts are tokenised one after the other.

    Raises:
        TokenizerError: the bundle's files are not a tokenizer.
        InputError: there is no such treatment of long texts; the maximum is more than the model takes, or leaves no
            room beside the special tokens.
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


def tokenization_of(manifest: Manifest, tokenizer: TextTokenizer) -> str:
    """Return a name for all that decides which ids texts get: the tokenizer of a bundle, and where texts are cut.

    Bundles of one model in other layers or precisions have the same.
    """
    files = [manifest.files.get(name) for name in (TOKENIZER_FILE, SENTENCEPIECE_FILE)]
    decisive = (files, manifest.tokenizer_spec, manifest.empty_ids, manifest.vocab_size)
    digest = hashlib.sha256(msgspec.json.encode(decisive)).hexdigest()[:12]
    return f"{digest}-{tokenizer.description}-{tokenizer.long_text}-{tokenizer.max_length}"


# `count_documents()`: what idf weights are made from, by the tokenizer alone.


class DocumentCounter:
    """Counts documents with the tokenizer of a bundle, whose model is not loaded; threads may share it."""

    def __init__(
        self,
        model_type: str | PathLike[str] | None = None,
        num_layers: int | None = None,
        *,
        lang: str | None = None,
        use_fast_tokenizer: bool | None = None,
        precision: Precision | None = None,
        long_text: LongText = "truncate",
        max_length: int | None = None,
    ) -> None:
        """Load the tokenizer of a bundle.

        The arguments, and the errors, are those of `BERTScorer` that say which bundle, and where texts are cut. Counts
        of a bundle serve all bundles of that model with the same tokenizer.
        """
        bundle = resolve_bundle(
            None if model_type is None else local_path(model_type),
            lang=lang,
            num_layers=num_layers,
            all_layers=None,
            tokenizer_mode=None if use_fast_tokenizer is None else "fast" if use_fast_tokenizer else "slow",
            precision=precision,
        )
        self._tokenizer = load_tokenizer(bundle, long_text, max_length)
        self._vocab_size = bundle.manifest.vocab_size
        self.tokenization: str = tokenization_of(bundle.manifest, self._tokenizer)
        """What the counts say made the tokens."""

    def count(self, texts: Iterable[Reference]) -> DocumentCounts:
        """Count in how many texts each token occurs.

        Args:
            texts: strings, or lists of strings, duplicates included; read a few at a time, and not kept.

        Raises:
            InputError: something is not a string.
        """
        slices = (some.texts for some in read_items(texts, "texts") if isinstance(some, Texts))
        documents = (self._tokenizer(some)[0] for some in slices)
        return DocumentCounts.of_documents(documents, self._vocab_size, self.tokenization)


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

    Args:
        texts: usually all references: strings, or lists of strings, duplicates included; read a few at a time, and not
            kept.
        model_type, num_layers, lang, use_fast_tokenizer, precision: which bundle, as for `BERTScorer`.
        long_text, max_length: where texts are cut, as for the scorer that is to use the counts.

    Raises:
        InputError: something is not a string.
        UnknownModelError, UnknownLayerError, BundleError, HubError: as `BERTScorer` says.
    """
    counter = DocumentCounter(
        model_type,
        num_layers,
        lang=lang,
        use_fast_tokenizer=use_fast_tokenizer,
        precision=precision,
        long_text=long_text,
        max_length=max_length,
    )
    return counter.count(texts)
