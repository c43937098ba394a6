"""Loads the slow or the fast tokenizer of a model.

The functions are for transformers 4 and 5.
"""

from pathlib import Path

from transformers import (
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.tokenization_auto import get_tokenizer_config
from transformers.utils import cached_file

from bertscore_onnx.bundle.store import TokenizerMode
from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.spec import TOKENIZER_FILE
from bertscore_onnx.text.tokenizer_json import check_tokenizer_json
from bertscore_onnx_export.model.source import Source, loading, refuse_own_code
from bertscore_onnx_export.model.versions import IS_TRANSFORMERS_5
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, GOLDEN_PAIRS, PLAIN_TEXTS

_MAY_BE_MISSING = {
    "_raise_exceptions_for_missing_entries": False,
    "_raise_exceptions_for_connection_errors": False,
    "_raise_exceptions_for_gated_repo": False,
}
"""Options with which a file that cannot be had is None."""


def load_tokenizer(source: Source, mode: TokenizerMode) -> PreTrainedTokenizerBase:
    """Load the slow or fast tokenizer of a model.

    Raise an ExportError if it has none or is damaged.
    """
    with loading("tokenizer", source):
        settings = get_tokenizer_config(source.name_or_path, revision=source.revision)
        refuse_own_code(source, settings, "tokenizer_config.json")
        if mode == "fast":
            _check_file(source)
        named = settings.get("tokenizer_class")
        if IS_TRANSFORMERS_5 and mode == "slow":
            tokenizer = _load_slow(source, named)
        elif IS_TRANSFORMERS_5:
            tokenizer = _load_fast(source, named)
        else:
            tokenizer = AutoTokenizer.from_pretrained(
                source.name_or_path,
                revision=source.revision,
                use_fast=mode == "fast",
                trust_remote_code=False,
            )
        # False in transformers 4
        if tokenizer is not None and not isinstance(tokenizer, PreTrainedTokenizerBase):
            raise ValueError("the SentencePiece model is damaged")
    if tokenizer is None or tokenizer.is_fast != (mode == "fast"):
        other = "slow" if mode == "fast" else "fast"
        raise ExportError(
            f"{source.name_or_path} has no {mode} tokenizer (or lacks its vocabulary files). "
            f"Export it with `--tokenizer-mode {other}`."
        )
    return tokenizer


def _check_file(source: Source) -> None:
    """Raise a ValueError if a model's `tokenizer.json` exceeds the budget.

    transformers would not notice it.
    """
    path = cached_file(
        source.name_or_path, TOKENIZER_FILE, revision=source.revision, **_MAY_BE_MISSING
    )
    if path is None:
        return
    _, budget = check_tokenizer_json(Path(path))
    long_text = " ".join([GOLDEN_PAIRS[0][0]] * 1000)
    for text in (*PLAIN_TEXTS, *EDGE_CASE_TEXTS, long_text):
        budget.check(text)


class _AsInFile(PreTrainedTokenizerFast):  # type: ignore[misc] # transformers is untyped here
    """What `tokenizer.json` holds.

    The classes of transformers 5 build another tokenizer from its vocabulary.
    """

    frames_empty_texts = True
    """Whether an empty text gets special tokens.

    In transformers 4 the class without a model of its own adds none.
    """

    def build_inputs_with_special_tokens(self, ids: list[int]) -> list[int]:
        return list(self.encode("")) if self.frames_empty_texts else ids


def _load_fast(source: Source, named: str | None) -> PreTrainedTokenizerBase | None:
    """Load a fast tokenizer with transformers 5, and add the special tokens that its class has in
    transformers 4; None without `tokenizer.json`.
    """
    kind = _class_of(source, named)
    try:
        tokenizer = _AsInFile.from_pretrained(source.name_or_path, revision=source.revision)
    except ValueError as error:
        # transformers 4 and 5 make different tokenizers of files without `tokenizer.json`.
        if "instantiate the backend" in str(error):
            return None
        raise
    for role, token in getattr(kind, "special_tokens", {}).items():
        if getattr(tokenizer, role) is None:
            setattr(tokenizer, role, str(token))
    tokenizer.frames_empty_texts = kind is not None
    return tokenizer


def _load_slow(source: Source, named: str | None) -> PreTrainedTokenizerBase | None:
    """Load a slow tokenizer with transformers 5; None if its class or its files do not exist."""
    kind = _class_of(source, named)
    try:
        return kind and kind.from_pretrained(source.name_or_path, revision=source.revision)
    except TypeError as error:  # a file of the vocabulary is missing, or is None
        if "vocab_file" in str(error) or "NoneType" in str(error):
            return None
        raise


def _class_of(source: Source, named: str | None) -> type[PreTrainedTokenizerBase] | None:
    from bertscore_onnx_export.tokenizer.slow import class_of  # transformers 4 has its own

    settings = {}
    if named is None:
        settings, _ = PretrainedConfig.get_config_dict(
            source.name_or_path, revision=source.revision
        )
    return class_of(named or settings.get("tokenizer_class"), settings.get("model_type", ""))
