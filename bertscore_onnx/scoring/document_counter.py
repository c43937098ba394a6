"""`count_documents()`: what idf weights are made from, by the tokenizer alone."""

from collections.abc import Iterable
from os import PathLike

from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.hub import local_path
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.inputs import Reference, Texts, read_items
from bertscore_onnx.scoring.tokenization import load_tokenizer, tokenization_of
from bertscore_onnx.text.tokenizer import LongText


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
