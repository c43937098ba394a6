"""JSON as RFC 8259 has it and no more: what Python's parser lets pass is refused, with the place where it stands."""

import json
import re
from typing import Any, NoReturn

from bertscore_onnx.server.requests.errors import ApiError

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def parse(content: bytes | bytearray) -> Any:
    """Parse a JSON text.

    Args:
        content: the text in UTF-8.

    Raises:
        ApiError: 400: it is not UTF-8 or not JSON, is nested too deeply, or has a key twice in one object, a number
            beyond reason, NaN, Infinity or half a surrogate pair.
    """
    try:
        text = content.decode()
        value = json.loads(text, object_pairs_hook=_object_of, parse_constant=_refuse_constant)
        if _SURROGATE_ESCAPE.search(text):  # most likely a whole pair, which is fine
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise _malformed(f"the byte at offset {error.start} is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise _malformed("a string holds half a surrogate pair, which no text can hold") from error
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise _malformed("it is nested too deeply") from error
    except ValueError as error:  # a whole number of more digits than Python converts
        raise _malformed("a number has too many digits") from error
    return value


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, in which a key must stand once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _malformed(f"the key {twice!r} stands twice in one object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise _malformed(f"{name} is not JSON")


def _malformed(what: str) -> ApiError:
    return ApiError(400, "malformed_json", f"The body is not JSON: {what}.")
