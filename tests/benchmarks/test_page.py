import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("RESPO_SHARED", ROOT.parent / "shared"))
RESPONSES = SHARED / "data/generations/math_50x8.jsonl"
NAMES = ["objectives", "trainer", "sampler", "scoring", "statistics", "reporting", "dag", "jobs"]


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.__main__")


def test_a_section_takes_its_place_and_leaves_the_others(page, tmp_path):
    path = tmp_path / "page.md"
    page.write(path, "sampler", "the sampler")
    page.write(path, "objectives", "the objectives")
    page.write(path, "sampler", "the sampler, anew")
    text = path.read_text()
    assert text.startswith(page.HEAD)
    assert text.index("the objectives") < text.index("the sampler, anew")
    assert text.count("the sampler") == 1


def test_every_benchmark_is_on_the_page(page):
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    assert set(NAMES) == set(page.TITLES) == files - {"__main__", "machine", "race", "synthetic"}


def test_an_unknown_name_is_refused(page, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks", "speed"])
    with pytest.raises(SystemExit):
        page.main()
    assert "no such benchmark: speed; there are: objectives, trainer" in capsys.readouterr().err


def test_a_quick_run_prints_and_leaves_the_page_alone(page, tmp_path, monkeypatch, capsys):
    written = tmp_path / "page.md"
    monkeypatch.setattr(page, "PAGE", written)
    monkeypatch.setattr(page, "measure", lambda name, quick: [page.Row("x", "ms", [1.0])])
    monkeypatch.setattr("sys.argv", ["benchmarks", "statistics", "--quick"])
    page.main()
    printed = capsys.readouterr().out
    assert "| x | ms | 1 | - | - | - | - |" in printed
    # It says what it is, and not the sizes of the whole benchmark.
    assert page.QUICK in printed
    assert "10,000 replicates" not in printed
    assert not written.exists()
    monkeypatch.setattr("sys.argv", ["benchmarks", "statistics"])
    page.main()
    assert "10,000 replicates" in written.read_text()


def test_the_page_itself_makes_no_revision_dirty(page, tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert page.revision(tmp_path) == "unknown"
    (tmp_path / "docs").mkdir()
    files = [tmp_path / "docs/benchmarks.md", tmp_path / "code.py"]
    for path in files:
        path.write_text("1")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    clean = page.revision(tmp_path)
    assert len(clean) >= 7
    files[0].write_text("2")
    assert page.revision(tmp_path) == clean
    files[1].write_text("2")
    assert page.revision(tmp_path) == f"{clean}-dirty"


# Small sizes: that each runs to its table. Only where all that is compared is installed: it takes a
# minute.
@pytest.mark.peers
@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name, tmp_path):
    pytest.importorskip("trl")
    pytest.importorskip("verl")
    if name == "scoring" and not RESPONSES.exists():
        pytest.skip(f"{RESPONSES} is not here")
    out = tmp_path / "page.md"
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--out", out]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| what | unit | ours | peer |" in out.read_text()
