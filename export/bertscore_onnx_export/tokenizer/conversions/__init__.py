"""How each slow tokenizer of transformers is converted: one table, and a function for each kind."""

from collections.abc import Mapping

from transformers import PreTrainedTokenizer

from bertscore_onnx.errors import ExportError
from bertscore_onnx_export.tokenizer.conversions.byt5 import byt5
from bertscore_onnx_export.tokenizer.conversions.byte_bpe import byte_bpe
from bertscore_onnx_export.tokenizer.conversions.converted import Converted, SlowConversion
from bertscore_onnx_export.tokenizer.conversions.sentencepiece import (
    cleaned_sentencepiece,
    deberta_sentencepiece,
    sentencepiece,
    t5_sentencepiece,
)
from bertscore_onnx_export.tokenizer.conversions.word_bpe import bertweet, blenderbot_small, xlm
from bertscore_onnx_export.tokenizer.conversions.wordpiece import wordpiece

CONVERSIONS: Mapping[str, SlowConversion] = {
    "AlbertTokenizer": cleaned_sentencepiece,
    "BartTokenizer": byte_bpe,
    "BertTokenizer": wordpiece,
    "BertweetTokenizer": bertweet,
    "BigBirdTokenizer": sentencepiece,
    "BlenderbotSmallTokenizer": blenderbot_small,
    "BlenderbotTokenizer": byte_bpe,
    "ByT5Tokenizer": byt5,
    "CamembertTokenizer": sentencepiece,
    "ConvBertTokenizer": wordpiece,
    "DebertaTokenizer": byte_bpe,
    "DebertaV2Tokenizer": deberta_sentencepiece,
    "DistilBertTokenizer": wordpiece,
    "ElectraTokenizer": wordpiece,
    "GPT2Tokenizer": byte_bpe,
    "LEDTokenizer": byte_bpe,
    "LongformerTokenizer": byte_bpe,
    "MBart50Tokenizer": sentencepiece,
    "MBartTokenizer": sentencepiece,
    "MPNetTokenizer": wordpiece,
    "PegasusTokenizer": sentencepiece,
    "ProphetNetTokenizer": wordpiece,
    "RobertaTokenizer": byte_bpe,
    "SqueezeBertTokenizer": wordpiece,
    "T5Tokenizer": t5_sentencepiece,
    "XLMProphetNetTokenizer": sentencepiece,
    "XLMRobertaTokenizer": sentencepiece,
    "XLMTokenizer": xlm,
    "XLNetTokenizer": cleaned_sentencepiece,
}
"""By the class of the slow tokenizer, which says more than a model's type: BERTweet is of the type `roberta`."""


def convert(slow: PreTrainedTokenizer) -> Converted:
    """Convert a slow tokenizer.

    Raises:
        ExportError: there is no way to, or its files do not fit together.
    """
    for ancestor in type(slow).__mro__:
        if ancestor.__name__ in CONVERSIONS:
            return _converted(slow, CONVERSIONS[ancestor.__name__])
    raise ExportError(
        f"The slow tokenizer {type(slow).__name__} cannot be converted by this version. Export with "
        "`--tokenizer-mode fast` if it has a fast one."
    )


def _converted(slow: PreTrainedTokenizer, conversion: SlowConversion) -> Converted:
    try:
        return conversion(slow)
    except Exception as error:
        if type(error) is not Exception:  # the `tokenizers` package raises nothing narrower; all else is a bug here
            raise
        raise ExportError(
            f"The vocabulary files of {slow.name_or_path} do not fit together: {error}. Download or save them again."
        ) from error


__all__ = ["CONVERSIONS", "Converted", "SlowConversion", "convert"]
