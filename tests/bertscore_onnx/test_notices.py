import threading

import pytest

from bertscore_onnx.notices import heard_by, notice


def test_a_notice_is_a_warning_that_shows_the_line_asked_for():
    def caller():
        notice("2 texts", stacklevel=2)

    with pytest.warns(UserWarning, match="2 texts") as caught:
        caller()
    assert caught[0].filename == __file__


def test_a_listener_hears_it_in_its_place():
    heard = []
    with heard_by(heard.append):
        notice("2 texts", stacklevel=1)
    assert heard == ["2 texts"]
    with pytest.warns(UserWarning, match="3 texts"):
        notice("3 texts", stacklevel=1)


def test_a_listener_hears_its_own_thread_only():
    heard, raised = [], []

    def elsewhere():
        try:
            notice("2 texts", stacklevel=1)
        except UserWarning as warning:  # warnings are errors in tests
            raised.append(str(warning))

    with heard_by(heard.append):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert (heard, raised) == ([], ["2 texts"])
