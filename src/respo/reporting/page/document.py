"""The page as text: a template, its styles and scripts, and the data."""

import base64
import gzip
import hashlib
import json
import re
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
# Bytes of a page in a report of snakemake, which shows it as a data: address. Chromium loads none
# that is longer than 2 MiB, and base64 takes 4 characters for 3 bytes.
SHOWN_IN_REPORT = 1_500_000
SCRIPTS = ("base.js", "grid.js", "cell.js", "chart.js", "curves.js", "start.js")


def page(data: dict[str, Any]) -> str:
    """Return the page.

    Responses are arbitrary text. They stand in the page as base64, the scripts show them as text
    only, and the page's own policy allows no other script and no request at all.

    Args:
        data: as `respo.reporting.page.data.collect` makes it.
    """
    style, script = _read("page.css"), "\n".join(_read(name) for name in SCRIPTS)
    parts = {
        "title": escape(f"{data['title']}: explore"),
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}",
        "style": style,
        "script": script,
        "data": _packed(data),
    }
    return re.sub("@(title|policy|style|script|data)@", lambda m: parts[m[1]], _read("page.html"))


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _packed(data: dict[str, Any]) -> str:
    """Compress the data, for the sake of `SHOWN_IN_REPORT`."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
