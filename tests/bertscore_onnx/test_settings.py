"""`ScorerSettings` lists the settings of a scorer, and `count_documents` takes those of its
tokenizer.
"""

from inspect import signature
from typing import get_type_hints

import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputTypeError
from bertscore_onnx.settings import ScorerSettings, checked_settings


def test_the_settings_are_the_arguments_of_a_scorer():
    assert get_type_hints(ScorerSettings).keys() == signature(BERTScorer).parameters.keys() - {
        "unknown"
    }


@pytest.mark.parametrize("name", ["model_type", "return_hash"])
def test_another_setting_is_refused_beside_a_bundle(name):
    with pytest.raises(InputTypeError, match=name):
        checked_settings({name: "a"})
