"""SentencePiece: XLM-RoBERTa, ALBERT, T5 and many others."""

from typing import Any

from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizer

from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.normalizers import CleanQuotes, Normalizer
from bertscore_onnx.text.sentencepiece import SPACE, SentencePiece
from bertscore_onnx_export.tokenizer.conversions.converted import Converted

_ModelProto: Any = vars(sentencepiece_model_pb2)["ModelProto"]  # made at import, unknown to type checkers
_Kind = _ModelProto.SentencePiece.Type


def unigram(slow: PreTrainedTokenizer) -> Converted:
    """Keep pieces, scores and character table in `tokenizer.json`; the bundle's own code chooses the pieces."""
    return _converted(slow, _model(slow.sp_model))


def cleaned_unigram(slow: PreTrainedTokenizer) -> Converted:
    """Do the same for ALBERT and XLNet, which clean texts first and take commas off numbers."""
    step = CleanQuotes(
        collapse_space=slow.remove_space, strip_accents=not slow.keep_accents, lowercase=slow.do_lower_case
    )
    return _converted(slow, _model(slow.sp_model), [step], split_number_comma=True)


def deberta_unigram(slow: PreTrainedTokenizer) -> Converted:
    """Do the same for DeBERTa v2 and v3, which may take punctuation apart first."""
    return _converted(slow, _model(slow._tokenizer.spm), split_punctuation=slow.split_by_punct)


def t5_unigram(slow: PreTrainedTokenizer) -> Converted:
    """Do the same for T5 and mT5, in what transformers calls the legacy way, which is the default.

    Raises:
        ExportError: the tokenizer goes the other way.
    """
    if not slow.legacy:
        raise ExportError(
            "T5 tokenizers with `legacy=False` are not reproduced in the slow mode. Export with "
            "`--tokenizer-mode fast`, or set `legacy` to true in tokenizer_config.json."
        )
    return unigram(slow)


def _model(processor: SentencePieceProcessor) -> Any:
    """Return all that a model file says.

    Raises:
        ExportError: it is of a kind that is not covered.
    """
    model = _ModelProto.FromString(processor.serialized_model_proto())
    trainer = model.trainer_spec
    if trainer.model_type not in (trainer.UNIGRAM, trainer.BPE) or trainer.treat_whitespace_as_suffix:
        raise ExportError(
            "Of SentencePiece models only Unigram and BPE ones with the space before a word are reproduced in the slow "
            "mode. Export with `--tokenizer-mode fast`."
        )
    return model


def _converted(
    slow: PreTrainedTokenizer,
    model: Any,
    steps: list[Normalizer] | None = None,
    *,
    split_number_comma: bool = False,
    split_punctuation: bool = False,
) -> Converted:
    ids = slow.convert_tokens_to_ids([piece.piece for piece in model.pieces])
    kinds = (_Kind.NORMAL, _Kind.USER_DEFINED)
    matched = {index: piece for index, piece in zip(ids, model.pieces, strict=True) if piece.type in kinds}
    vocab = [
        (matched[index].piece, matched[index].score) if index in matched else (slow.convert_ids_to_tokens(index), 0.0)
        for index in range(max(ids) + 1)
    ]
    byt5 = slow.convert_tokens_to_ids([f"<0x{byte:02X}>" for byte in range(256)])
    options = SentencePiece(
        model="bpe" if model.trainer_spec.model_type == model.trainer_spec.BPE else "unigram",
        add_dummy_prefix=model.normalizer_spec.add_dummy_prefix,
        remove_extra_whitespaces=model.normalizer_spec.remove_extra_whitespaces,
        unknown_id=slow.convert_tokens_to_ids(model.trainer_spec.unk_piece),
        unmatched_ids=[index for index in range(len(vocab)) if index not in matched],
        user_defined_ids=sorted(index for index, piece in matched.items() if piece.type == _Kind.USER_DEFINED),
        byte_ids=byt5 if model.trainer_spec.byte_fallback else [],
        split_number_comma=split_number_comma,
        split_punctuation=split_punctuation,
    )
    tokenizer = Tokenizer(models.Unigram(vocab, options.unknown_id, bool(options.byte_ids)))
    if model.normalizer_spec.precompiled_charsmap:
        tokenizer.normalizer = normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, "always" if options.add_dummy_prefix else "never")
    return Converted(tokenizer, steps or [], sentencepiece=options)
