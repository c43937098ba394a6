from bertscore_onnx.scores import Signature


def signature(model):
    return Signature(model, 17, "no", "en", "slow", "truncate", None, "fp32", "abc", version="1.0")


def test_a_value_cannot_break_the_line_or_add_a_field():
    assert str(signature("a b|layer:1\n\x1b[2J\u2028")).startswith(
        "bertscore-onnx|model:a_b_layer:1__[2J_|layer:17|"
    )
