"""A pack is made, carried elsewhere, checked, and drawn from."""

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from respo.check import __main__ as check
from respo.cli import UserError
from respo.environment import code_revision
from respo.files import read_json
from respo.pack import __main__ as module
from respo.pack.contents import check_private
from respo.reporting import figure, table
from respo.reporting.page import __main__ as page

CELL = "mini/respo/N2/seed1/eval/2/easy"


def call(command, *arguments):
    """Run a command in this process; return its exit code or message."""
    before, sys.argv = sys.argv, ["command", *map(str, arguments)]
    try:
        command.main()
    except SystemExit as stopped:
        return stopped.code
    finally:
        sys.argv = before
    return 0


@pytest.fixture(scope="module")
def packed(finished_study, tmp_path_factory):
    out = tmp_path_factory.mktemp("pack") / "mini.tar.gz"
    assert call(module, finished_study, "--out", out) == 0
    return out


@pytest.fixture
def unpacked(packed, tmp_path):
    """The folder of the pack, on what could be another machine."""
    subprocess.run(["tar", "xf", packed], cwd=tmp_path, check=True)
    return tmp_path / "mini"


def contents(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_archive(packed, finished_study):
    with tarfile.open(packed) as archive:
        members = archive.getmembers()
    names = [member.name for member in members]
    assert names[0] == "mini/MANIFEST.json"
    assert names[1:] == sorted(names[1:])
    assert {f"mini/{CELL}/cell.json", f"mini/{CELL}/scores.parquet"} < {*names}
    assert "mini/reference/respo.csv" in names
    # No weights, logs, report, and, if not asked for, no responses.
    assert not [n for n in names if "weights" in n or "checkpoints" in n or "generations" in n]
    assert "mini/report.html" not in names
    for member in members:
        assert member.isreg()
        assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
        assert member.mode == 0o644
    assert str(finished_study.parent).encode() not in gzip.decompress(packed.read_bytes())


def test_the_same_folder_gives_the_same_bytes(packed, study_copy, tmp_path):
    assert call(module, study_copy, "--out", tmp_path / "again.tar.gz") == 0
    assert (tmp_path / "again.tar.gz").read_bytes() == packed.read_bytes()


def test_the_manifest(unpacked, finished_study):
    manifest = read_json(unpacked / "MANIFEST.json")
    files = contents(unpacked)
    del files["MANIFEST.json"]
    assert manifest["files"] == {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for name, data in files.items()
    }
    assert (manifest["study"], manifest["title"]) == ("mini", "Miniature")
    assert manifest["environment"]["code"] == code_revision()
    assert manifest["left_out"] == ["checkpoints", "report", "generations"]


def test_it_is_checked_and_drawn_from_elsewhere(unpacked, capsys):
    assert call(check, unpacked) == 0
    assert "3 cells summed up again, 1 tables made again" in capsys.readouterr().out
    before = contents(unpacked)
    for kind in ("tables", "figures"):
        shutil.rmtree(unpacked / kind)
    papers = unpacked / "reference"
    assert call(table, "respo/table1", "--study", unpacked, "--reference", papers) == 0
    assert call(figure, "respo/fig3", "--study", unpacked) == 0
    assert contents(unpacked) == before


def test_a_flipped_bit_is_named(unpacked, capsys):
    path = unpacked / CELL / "scores.parquet"
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    (unpacked / "explore.html").unlink()
    (unpacked / "more.txt").touch()
    capsys.readouterr()
    assert call(check, unpacked) == 1
    out = capsys.readouterr().out
    assert f"  {path}: is not the file that MANIFEST.json lists; unpack again\n" in out
    assert "  explore.html: MANIFEST.json lists it: unpack again\n" in out
    assert f"  {unpacked / 'more.txt'}: MANIFEST.json does not list it\n" in out
    assert "snakemake" not in out
    assert f"{unpacked}: 1 damaged, 1 missing, of " in out


def test_responses_go_if_asked_for(study_copy, tmp_path, monkeypatch):
    out = tmp_path / "all.tar.gz"
    assert call(module, study_copy, "--out", out, "--generations") == 0
    with tarfile.open(out) as archive:
        assert f"mini/{CELL}/generations.parquet" in archive.getnames()
        archive.extractall(tmp_path / "there/results", filter="data")
    # With them the page can be made again: it shows some.
    (tmp_path / "there/Snakefile").touch()
    monkeypatch.chdir(tmp_path / "there")
    assert call(check, "results/mini") == 0
    before = Path("results/mini/explore.html").read_bytes()
    Path("results/mini/explore.html").unlink()
    assert call(page, "--study", "results/mini") == 0
    assert Path("results/mini/explore.html").read_bytes() == before


def test_only_a_whole_folder_is_packed(study_copy, tmp_path):
    out = tmp_path / "x.tar.gz"
    shutil.rmtree(study_copy / "mini/respo/N2/seed1/checkpoints")  # would be left out
    (study_copy / "report.html").unlink()
    assert call(module, study_copy, "--out", out) == 0
    out.unlink()
    (study_copy / CELL / "cell.json").unlink()
    message = call(module, study_copy, "--out", out)
    assert f"{CELL}/cell.json is missing, one of 1; `python -m respo.check" in message
    assert message.endswith("or pack with --partial")
    assert call(module, study_copy, "--out", out, "--partial") == 0
    out.unlink()
    (study_copy / "explore.html").write_text("<html></html>")
    message = call(module, study_copy, "--out", out, "--partial")
    assert "explore.html is damaged, one of 1" in message
    assert not out.exists()
    assert call(module, study_copy, "--out", tmp_path / "x.zip") == 2


def test_what_lies_elsewhere_is_packed_if_asked_for(study_copy, packed, tmp_path):
    """A run on another disk, and weights, which no pack has: the pack is the same."""
    run = study_copy / "mini/respo/N2/seed1"
    weights = run / "checkpoints/2"
    weights.symlink_to(shutil.move(weights, tmp_path / "weights"))
    assert call(module, study_copy, "--out", tmp_path / "a.tar.gz") == 0
    elsewhere = shutil.move(run, tmp_path / "elsewhere")
    run.symlink_to(elsewhere)
    message = call(module, study_copy, "--out", tmp_path / "b.tar.gz")
    assert message.startswith(f"error: {run}: is a link to {elsewhere}; pack with --follow-links")
    assert not (tmp_path / "b.tar.gz").exists()
    assert call(module, study_copy, "--out", tmp_path / "b.tar.gz", "--follow-links") == 0
    for name in ("a.tar.gz", "b.tar.gz"):
        assert (tmp_path / name).read_bytes() == packed.read_bytes()


def test_paths_of_this_machine_are_not_packed(study_copy, tmp_path, monkeypatch):
    """A model that lies in a folder of the user's, as study.yaml and config.yaml would name it."""
    study = study_copy / "study.yaml"
    study.write_text(study.read_text().replace("title: Miniature", "title: of /home/jane/models"))
    papers = Path(__file__).parents[2] / "config" / "reference"
    assert call(table, "respo/table1", "--study", study_copy, "--reference", papers) == 0
    assert call(figure, "respo/fig3", "--study", study_copy) == 0
    (study_copy.parents[1] / "Snakefile").touch()
    monkeypatch.chdir(study_copy.parents[1])
    assert call(page, "--study", "results/mini") == 0
    out = tmp_path / "x.tar.gz"
    message = call(module, study_copy, "--out", out)
    assert f"{study}: holds '/home/jane/models', which tells of this machine" in message
    assert call(module, study_copy, "--out", out, "--with-paths") == 0


def test_a_page_that_names_a_folder_is_refused(study_copy, tmp_path, monkeypatch):
    """Its data are compressed; it names one where results lie beside no Snakefile."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    check_private("explore.html", study_copy / "explore.html")
    assert call(page, "--study", study_copy) == 0
    with pytest.raises(UserError, match=r"explore\.html: holds '.*', which tells of this machine"):
        check_private("explore.html", study_copy / "explore.html")


@pytest.mark.parametrize("name", ["a.md", "a.parquet", "initial/m/initial.json"])
def test_this_users_own_words_are_found_in_any_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr(Path, "home", lambda: Path("/home/jane"))
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"data": "/home/jane/x"}')
    with pytest.raises(UserError, match="holds '/home/jane'"):
        check_private(name, path)


def test_the_folder_of_published_weights_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: Path("/home/jane"))
    path = tmp_path / "initial.json"
    path.write_text(json.dumps({"weights": "/home/jane/hub", "weights_sha256": "0"}))
    check_private("initial/m/initial.json", path)


@pytest.mark.parametrize("value", ["a/b", "https://a/b/c", "1/2", "src/respo", "and/or", "~"])
def test_what_is_no_path_of_a_machine(tmp_path, value):
    (tmp_path / "a.yaml").write_text(yaml.safe_dump({"key": value}))
    check_private("a.yaml", tmp_path / "a.yaml")


@pytest.mark.parametrize(
    "value", ["/home/jane", "x=/data/models", "~/models", "C:\\\\Users\\\\jane"]
)
def test_paths_in_a_configuration(tmp_path, value):
    (tmp_path / "a.yaml").write_text(f"key: {value}\n")
    with pytest.raises(UserError, match="tells of this machine"):
        check_private("a.yaml", tmp_path / "a.yaml")
