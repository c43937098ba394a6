"""SentencePiece: XLM-RoBERTa, ALBERT, T5 and many others."""

from collections.abc import Sequence
from itertools import pairwise

from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizer

from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.normalizers import CleanQuotes, Normalizer
from bertscore_onnx.text.spec import SentencePieceSpec
from bertscore_onnx_export.tokenizer.conversions.converted import Converted, without_holes


def sentencepiece(slow: PreTrainedTokenizer) -> Converted:
    """Copy the model file, which the runtime encodes with; `tokenizer.json` names the ids."""
    return _converted(slow, slow.sp_model)


def cleaned_sentencepiece(slow: PreTrainedTokenizer) -> Converted:
    """Do the same for ALBERT and XLNet, which clean texts first and take commas off numbers."""
    cleaning = CleanQuotes(
        collapse_space=slow.remove_space, strip_accents=not slow.keep_accents, lowercase=slow.do_lower_case
    )
    return _converted(slow, slow.sp_model, [cleaning], split_number_comma=True)


def deberta_sentencepiece(slow: PreTrainedTokenizer) -> Converted:
    """Do the same for DeBERTa v2 and v3, which may take punctuation apart first."""
    return _converted(slow, slow._tokenizer.spm, split_punctuation=slow.split_by_punct)


def t5_sentencepiece(slow: PreTrainedTokenizer) -> Converted:
    """Do the same for T5 and mT5, in what transformers calls the legacy way, which is the default.

    Raises:
        ExportError: the tokenizer goes the other way.
    """
    if not slow.legacy:
        raise ExportError(
            "T5 tokenizers with `legacy=False` are not reproduced in the slow mode. Export with "
            "`--tokenizer-mode fast`, or set `legacy` to true in tokenizer_config.json."
        )
    return sentencepiece(slow)


def _converted(
    slow: PreTrainedTokenizer,
    processor: SentencePieceProcessor,
    pre_tokenizers: Sequence[Normalizer] = (),
    *,
    split_number_comma: bool = False,
    split_punctuation: bool = False,
) -> Converted:
    ids = slow.convert_tokens_to_ids([processor.id_to_piece(piece) for piece in range(processor.get_piece_size())])
    vocab: dict[str, int] = {}
    for index in range(max(ids) + 1):
        vocab.setdefault(slow.convert_ids_to_tokens(index), index)
    return Converted(
        Tokenizer(models.WordLevel(without_holes(vocab), str(slow.unk_token))),
        list(pre_tokenizers),
        sentencepiece=SentencePieceSpec(
            id_runs=_runs(ids), split_number_comma=split_number_comma, split_punctuation=split_punctuation
        ),
        sentencepiece_model=processor.serialized_model_proto(),
    )


def _runs(ids: list[int]) -> list[tuple[int, int]]:
    """Return where runs of consecutive ids begin, and their first ids."""
    return [(0, ids[0])] + [(place, two) for place, (one, two) in enumerate(pairwise(ids), 1) if two != one + 1]
