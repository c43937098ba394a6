from bertscore_onnx.deduplication import number_distinct


def test_equal_items_share_a_number():
    first, numbers = number_distinct(["b", "a", "b", "c", "a"])
    assert first == [0, 1, 3]
    assert numbers.tolist() == [0, 1, 0, 2, 1]


def test_nothing_has_no_numbers():
    first, numbers = number_distinct([])
    assert first == []
    assert numbers.tolist() == []
