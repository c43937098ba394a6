import threading

import pytest

from bertscore_onnx.scoring.text_warnings import Notices, heard_by


@pytest.mark.parametrize(
    ("notices", "message"),
    [
        (Notices(empty=1), "1 pair scores 0 because a side is empty."),
        (Notices(empty=2), "2 pairs score 0 because a side is empty."),
        (Notices(weightless=1), "1 pair scores 0 because every token of a side weighs 0."),
        (Notices(weightless=7), "7 pairs score 0 because every token of a side weighs 0."),
        (
            Notices(cut=1, max_length=512),
            "1 text is longer than 512 tokens and cut there, as bert-score does without a word. What is beyond does "
            'not count; with long_text="window" it does.',
        ),
        (
            Notices(cut=3, max_length=512),
            "3 texts are longer than 512 tokens and cut there, as bert-score does without a word. What is beyond does "
            'not count; with long_text="window" it does.',
        ),
    ],
)
def test_each_kind_is_told_with_its_number(notices, message):
    with pytest.warns(UserWarning, match=" ") as caught:
        notices.warn(stacklevel=1)
    assert [str(warning.message) for warning in caught] == [message]


def test_each_kind_that_happened_is_told_once():
    with pytest.warns(UserWarning, match=" ") as caught:
        Notices(empty=1, weightless=2, cut=3, max_length=32).warn(stacklevel=1)
    assert len(caught) == 3


@pytest.mark.filterwarnings("error")
def test_what_did_not_happen_is_not_told():
    Notices(max_length=512).warn(stacklevel=1)


def test_the_line_so_many_levels_up_is_named():
    def library():
        Notices(empty=1).warn(stacklevel=2)

    with pytest.warns(UserWarning, match="1 pair") as caught:
        library()
    assert (caught[0].filename, caught[0].lineno) == (__file__, library.__code__.co_firstlineno + 4)


def test_a_listener_hears_it_in_place_of_a_warning():
    heard = []
    with heard_by(heard.append):
        Notices(empty=1).warn(stacklevel=1)
    assert heard == ["1 pair scores 0 because a side is empty."]
    with pytest.warns(UserWarning, match="1 pair"):
        Notices(empty=1).warn(stacklevel=1)


@pytest.mark.filterwarnings("ignore:1 pair:UserWarning")
def test_a_listener_hears_its_own_thread_only():
    heard = []
    with heard_by(heard.append):
        elsewhere = threading.Thread(target=Notices(empty=1).warn, args=(1,))
        elsewhere.start()
        elsewhere.join()
    assert heard == []
