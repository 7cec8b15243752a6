"""Known vulnerabilities of the locks, as a database on this machine tells them; licences."""

import importlib.util
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ENVS = Path(__file__).parents[1] / "envs"

spec = importlib.util.spec_from_file_location("audit", ENVS / "audit.py")
assert spec
assert spec.loader
audit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(audit)

# As https://google.github.io/osv.dev/api/ describes the answers.
ADVISORY = {
    "id": "GHSA-1",
    "aliases": ["CVE-1"],
    "summary": "Reads \x1b[2Jtoo much",
    "affected": [
        {"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.0"}]}]},
        {"ranges": [{"type": "GIT", "events": [{"fixed": "abc"}]}]},
    ],
}


class Database(BaseHTTPRequestHandler):
    """`bad` 1.0 has a vulnerability, on a second page."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        self.answer({"results": [self.result(query) for query in asked]})

    def result(self, query):
        assert query["package"]["ecosystem"] == "PyPI"
        if (query["package"]["name"], query["version"]) != ("bad-one", "1.0"):
            return {}
        if "page_token" not in query:
            return {"next_page_token": "x"}
        return {"vulns": [{"id": "GHSA-1", "modified": "2026-01-01"}]}

    def do_GET(self) -> None:
        assert self.path == "/v1/vulns/GHSA-1"
        self.answer(ADVISORY)

    def answer(self, value) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that audits a lock: exit code, and what is printed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Database)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(audit, "licences", lambda: {"fine": "MIT"})

    def run(lock, database=f"http://127.0.0.1:{server.server_port}"):
        (tmp_path / "lock.txt").write_text(lock)
        monkeypatch.setattr("sys.argv", ["x", "--database", database, "--envs", str(tmp_path)])
        return audit.main(), "".join(capsys.readouterr())

    yield run
    server.shutdown()
    server.server_close()


def test_a_vulnerability(run):
    code, text = run("# made\nfine==1.0\nBad_One==1.0+cpu ; x == 'y' \\\n    --hash=sha256:00\n")
    assert code == 1
    assert "bad-one 1.0 (lock.txt): GHSA-1 (CVE-1): Reads [2Jtoo much; mended in 2.0\n" in text


def test_none(run):
    code, text = run("fine==1.0\nbad-one==2.0\n")
    assert code == 0
    assert "none is known of the 2 versions" in text


def test_one_that_is_accepted(run, tmp_path):
    (tmp_path / "accepted.txt").write_text("# Names and reasons\nGHSA-1 we never read that\n")
    code, text = run("bad-one==1.0\n")
    assert code == 0
    assert "GHSA-1 is accepted: we never read that" in text


def test_more_than_one_question(run, monkeypatch):
    monkeypatch.setattr(audit, "AT_A_TIME", 2)
    assert run("a==1\nb==1\nc==1\nbad-one==1.0\n")[0] == 1


def test_no_database(run):
    code, text = run("bad-one==1.0\n", database="http://127.0.0.1:9")
    assert code == 3
    assert "NOTHING IS KNOWN: http://127.0.0.1:9 cannot be reached" in text


def test_an_answer_that_is_none(run):
    code, text = run("bad-one==1.0\n", database="data:,[]")
    assert code == 3
    assert "NOTHING IS KNOWN" in text


def test_every_lock_is_read():
    files = {file for files in audit.locked().values() for file in files}
    assert files >= {"lock.txt", "local.lock", "vllm.lock", "verl-cpu.txt", "verl-fsdp.lock"}
    assert files >= {"verl-megatron.lock", "verl-fsdp.sources.lock", "verl-megatron.sources.lock"}


def test_what_is_installed_is_permissive():
    licences = audit.licences()
    assert licences["respo"] == "Apache-2.0"
    assert audit.not_permissive({name: licences[name] for name in _locked() & set(licences)}) == []


def _locked():
    """The packages of the locks for everything but GPUs; people install others beside them."""
    locks = audit.locked().items()
    return {name for (name, _), files in locks if {"lock.txt", "local.lock"} & set(files)}


@pytest.mark.parametrize(
    ("licence", "is_permissive"),
    [
        ("MIT", True),
        ("MPL-2.0 AND MIT", True),
        ("BSD License", True),
        ("GPL-3.0-only", False),
        ("GNU Affero General Public License v3", False),
        ("LGPL-2.1 OR MIT", False),
        ("Proprietary", False),
        ("", False),
    ],
)
def test_licences(licence, is_permissive):
    assert (audit.not_permissive({"x": licence}) == []) == is_permissive
