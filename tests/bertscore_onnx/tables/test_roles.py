"""Columns that are known by their usual names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.roles import USUAL_NAMES, usual_columns

CASES = st.sampled_from([str, str.upper, str.title, " {} ".format, "\ufeff{}".format])
ENDS = st.lists(
    st.tuples(st.sampled_from(["", " ", "_", ".", "-"]), st.integers(1, 99)),
    max_size=4,
    unique_by=lambda end: end[1],
)
OTHERS = ["id", "reference_id", "references of 2", "reference2b", "preference2", "2", "", "target_"]


@given(st.sampled_from(USUAL_NAMES["reference"]), CASES, ENDS, st.permutations(OTHERS))
def test_numbered_columns_are_further_references_in_their_order(usual, case, ends, others):
    further = {number: case(f"{usual}{between}{number}") for between, number in ends}
    names = [*further.values(), *others]
    expected = [further[number] for number in sorted(further)]
    assert usual_columns("reference", names, "t", "--columns") == expected
    assert usual_columns("reference", [*names, usual], "t", "--columns") == [usual, *expected]


@given(st.sampled_from(["candidate", "reference"]), st.randoms(), CASES)
def test_two_usual_names_of_a_role_are_refused(role, random, case):
    one, other = random.sample(USUAL_NAMES[role], 2)
    with pytest.raises(InputError, match="expected one of them"):
        usual_columns(role, [one, "id", case(other)], "t", "--columns")


def test_candidates_have_no_numbers():
    assert usual_columns("candidate", ["candidate", "candidate2"], "t", "-c") == ["candidate"]
