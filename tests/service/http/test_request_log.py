"""The log has one line for each request, without bodies and keys."""

import json
import logging
import re

from bertscore_onnx_service.http.request_log import JsonLines, TextLines
from tests.support.http_server import BODY, access_lines, serving


def test_one_access_line_a_request(models, caplog):
    caplog.set_level(logging.INFO, "bertscore_onnx_service")
    with serving(models) as client:
        answer = client.post("/v1/score", json={"pairs": BODY["pairs"] * 2})
        missed = client.get("/a%0Ab?key=secret")
        scored, lost = access_lines(caplog, answer, missed)
    assert scored.pop("seconds") >= 0
    assert scored == {
        "request": answer.headers["X-Request-Id"],
        "client": "127.0.0.1",
        "method": "POST",
        "path": "/v1/score",
        "status": 200,
        "model": "tiny-bert",
        "pairs": 2,
    }
    assert (lost["path"], lost["status"], lost["reason"]) == ("/a%0Ab", 404, "not_found")
    assert " path=/a%0Ab status=404 " in caplog.text
    assert "secret" not in caplog.text


def test_log_lines_as_json():
    record = logging.LogRecord("x.y", logging.WARNING, "", 0, "A line\nand %d more", (1,), None)
    line = json.loads(JsonLines().format(record))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line.pop("time"))
    assert line == {"level": "warning", "logger": "x.y", "message": "A line\nand 1 more"}
    record.fields = {"status": 200}
    assert json.loads(JsonLines().format(record))["status"] == 200


def test_control_characters_of_a_message_are_escaped():
    try:
        raise ValueError("a\x1b[2Jb")
    except ValueError as error:
        failure = (ValueError, error, error.__traceback__)
    record = logging.LogRecord(
        "x.y", logging.INFO, "", 0, "Serving %s", ("news\n\x1b[31m2026 INFO all is well",), failure
    )
    first, *traceback = TextLines("%(levelname)s %(message)s").format(record).split("\n")
    assert first == r"INFO Serving news \x1b[31m2026 INFO all is well"
    assert (traceback[0], traceback[-1]) == (
        "Traceback (most recent call last):",
        r"ValueError: a\x1b[2Jb",
    )
