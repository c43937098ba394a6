"""The page at `/`, where a person types two sentences and sees their tokens match.

It is sent as one file, made of the markup, the style and the script that lie here, without anything from elsewhere. The
browser is told to run this script and this style and no other.
"""

import base64
import hashlib
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response


class PageEndpoint:
    """The endpoint."""

    def __init__(self) -> None:
        """Put the page together."""
        markup, style, script = (
            files(__name__).joinpath(name).read_text(encoding="utf-8")
            for name in ("index.html", "style.css", "script.js")
        )
        content = markup.replace("<style></style>", f"<style>{style}</style>")
        self._content = content.replace("<script></script>", f"<script>{script}</script>")
        self._headers = {
            "Content-Security-Policy": _policy(style, script),
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        }

    async def __call__(self, request: Request) -> Response:
        """Show the page."""
        return Response(self._content, headers=self._headers, media_type="text/html")


def _policy(style: str, script: str) -> str:
    """Allow the page's own script and style, by their digests, and requests to this server."""
    rules = [
        "default-src 'none'",
        f"script-src {_source(script)}",
        f"style-src {_source(style)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    return "; ".join(rules)


def _source(text: str) -> str:
    """Name an inline style or script by its digest."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
