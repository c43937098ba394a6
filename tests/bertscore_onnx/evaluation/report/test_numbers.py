"""Numbers as the report writes them."""

import pytest

from bertscore_onnx.evaluation.report.wording import count, equals, fixed, p_value, percent, signed
from tests.support.comparisons import metric_result

BERTSCORE, TER = (metric_result(name, ["a", "b"], [[0.5], [0.6]]) for name in ("bertscore", "ter"))


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (0.01234, BERTSCORE, "+0.0123"),
        (-0.01234, BERTSCORE, "−0.0123"),
        (0.00004, BERTSCORE, "0.0000"),
        (-0.00004, BERTSCORE, "0.0000"),
        (0, TER, "0.00"),
        (10, TER, "+10.00"),
    ],
)
def test_a_difference_has_a_sign_unless_it_is_rounded_to_zero(value, metric, text):
    assert signed(value, metric) == text


def test_numbers_have_their_decimals():
    assert [fixed(-0.0, 1), fixed(-1.25, 1), fixed(100, 0)] == ["0.0", "−1.2", "100"]
    assert [p_value(0.000999), p_value(1), p_value(0.00001)] == ["0.0010", "1.0000", "< 0.0001"]
    assert [equals(0.02), equals(0.00001)] == ["= 0.0200", "< 0.0001"]
    assert [percent(0.9995), percent(0)] == ["100.0 %", "0.0 %"]
    assert [count(12), count(1234567)] == ["12", "1,234,567"]
