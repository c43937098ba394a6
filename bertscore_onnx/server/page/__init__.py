"""The page at `/`, where a person types two sentences and sees their tokens match.

It is one file without anything from elsewhere. The browser is told to run its script and its style and no other.
"""

import base64
import hashlib
import re
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response


class PageEndpoint:
    """The endpoint."""

    def __init__(self) -> None:
        """Read the page."""
        self._content = files(__name__).joinpath("index.html").read_bytes()
        self._headers = {
            "Content-Security-Policy": _policy(self._content),
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        }

    async def __call__(self, request: Request) -> Response:
        """Show the page."""
        return Response(self._content, headers=self._headers, media_type="text/html")


def _policy(content: bytes) -> str:
    """Allow the page's own script and style, by their digests, and requests to this server."""
    rules = [
        "default-src 'none'",
        f"script-src {_source('script', content)}",
        f"style-src {_source('style', content)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    return "; ".join(rules)


def _source(element: str, content: bytes) -> str:
    """Name the content of the page's only element of this kind, by its digest."""
    [text] = re.findall(f"<{element}>(.*?)</{element}>".encode(), content, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"
