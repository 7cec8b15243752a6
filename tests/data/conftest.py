"""A small Hugging Face hub on this machine: the few answers that huggingface_hub asks for."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

COMMIT = "c" * 40
TOKEN = "hf_secret"


class Hub(ThreadingHTTPServer):
    """Data sets and models by name and file; a branch `main` and one commit."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, dict[str, bytes]] = {}
        self.commit = COMMIT
        # Repository -> the error that the hub answers with: a status and a code.
        self.errors: dict[str, tuple[int, str]] = {}
        self.requests: list[tuple[str, str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Files (`.../resolve/REVISION/FILE`), the commit of a revision, the list of files."""

    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        hub = self.server
        if path.startswith("/api/agent-harnesses"):
            return self._send(404, "")  # a question of huggingface_hub that is not about data
        hub.requests.append((self.command, path, self.headers.get("Authorization")))
        parts = path.strip("/").split("/")
        api = parts[0] == "api"
        if api or parts[0] == "datasets":
            parts = parts[2 if api else 1 :]
        # Now OWNER, NAME, what is asked for, REVISION and FILE.
        repository, revision = "/".join(parts[:2]), parts[3] if len(parts) > 3 else "main"
        if repository in hub.errors:
            self._send(*hub.errors[repository])
        elif repository not in hub.files:
            self._send(404, "RepoNotFound")
        elif revision not in ("main", hub.commit):
            self._send(404, "RevisionNotFound")
        elif api and parts[2:3] == ["revision"]:
            self._send(200, "", json.dumps({"id": repository, "sha": hub.commit}).encode())
        elif api:
            names = [
                {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
                for name, data in hub.files[repository].items()
            ]
            self._send(200, "", json.dumps(names).encode())
        elif (name := "/".join(parts[4:])) not in hub.files[repository]:
            self._send(404, "EntryNotFound")
        else:
            self._send(200, "", hub.files[repository][name])

    def _send(self, status: int, code: str, body: bytes = b"") -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("X-Repo-Commit", self.server.commit)
        self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def run_module(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `python -m MODULE ARGUMENT ...` in the test's folder, with these variables."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        known = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env={**known, "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_TOKEN": TOKEN, **variables},
            capture_output=True,
            text=True,
        )

    return run
