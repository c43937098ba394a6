import re
from dataclasses import asdict
from pathlib import Path

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_service.http.limits import Limits

DOCUMENT = Path(__file__).parents[3] / "docs" / "server.md"


@pytest.mark.parametrize(
    "limit", [{"max_pairs": 0}, {"deadline": 0.0}, {"drain": float("inf")}, {"drain": float("nan")}]
)
def test_limits_out_of_range_are_refused(limit):
    with pytest.raises(InputError, match=f"{next(iter(limit))} is"):
        Limits(**limit)


def test_the_document_names_the_defaults():
    rows = re.findall(
        r"^\| `(\w+)` \| ([\d,]+)", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE
    )
    limits = {name: int(number.replace(",", "")) for name, number in rows}
    assert {name: limits[name] for name in asdict(Limits())} == asdict(Limits())
