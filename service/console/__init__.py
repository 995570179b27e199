"""The console: one page for the browser, served beside the API that it uses.

Plain HTML, CSS and ES modules under `static/`; no build step, nothing from elsewhere. Charts are drawn by hand as SVG:
they are lines and bars, and plotly's bundle would be four megabytes of script for them.
"""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

__all__ = ["ConsoleFiles"]


class ConsoleFiles(StaticFiles):
    """The page and its parts, under a policy that lets nothing in that is not ours."""

    def __init__(self) -> None:
        super().__init__(directory=Path(str(files("service.console").joinpath("static"))), html=True)
        self._policy = _content_security_policy()

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """The file, to be asked for again each time: a new version is seen at once, an old one costs no bytes."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Content-Security-Policy"] = self._policy
        response.headers["Cache-Control"] = "no-cache"
        return response


def _content_security_policy() -> str:
    """Own scripts and styles only. A report is shown in a frame that inherits this, so its style is named by hash."""
    style = files("service.report").joinpath("page.css").read_bytes()
    report = base64.b64encode(hashlib.sha256(style).digest()).decode()
    return (
        "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        f"style-src 'self' 'sha256-{report}'; frame-src 'self'; form-action 'none'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
