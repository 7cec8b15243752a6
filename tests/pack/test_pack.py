"""A pack is made, carried elsewhere, checked, and drawn from."""

import base64
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
from respo.files import read_json, write_record
from respo.pack import __main__ as module
from respo.pack.contents import PAGE, SEARCHED, check_private
from respo.reporting import figure, style, table
from respo.reporting.page import __main__ as page

REFERENCE = Path(__file__).parents[2] / "config" / "reference"
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
    assert not {"mini/report.html", "mini/explore.html", "mini/explore.sources.json"} & {*names}
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
    assert manifest["left_out"] == ["checkpoints", "report", "generations", "page"]


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


@pytest.fixture
def redraw(unpacked, monkeypatch):
    """Draw a figure of the pack anew, as another revision of the code would."""

    def draw():
        there = {"code": "another", "python": "3.99.0"}
        monkeypatch.setattr("respo.provenance.sources.environment", lambda *packages: there)
        assert call(figure, "respo/fig3", "--study", unpacked) == 0

    return draw


def test_what_is_drawn_anew_by_another_revision_is_whole(unpacked, redraw, capsys):
    """Only the record is another: table and figure have the bytes that were packed."""
    redraw()
    assert call(table, "respo/table1", "--study", unpacked, "--reference", REFERENCE) == 0
    capsys.readouterr()
    assert call(check, unpacked) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        f"drawn anew here:\n  {unpacked / 'figures/respo/fig3.sources.json'} and 1 more: "
        "by revision another; same bytes as packed, but for the record itself\n"
    )
    assert "damaged" not in out


def test_what_comes_out_otherwise_when_drawn_anew_is_damaged(unpacked, redraw, monkeypatch, capsys):
    monkeypatch.setitem(style._STYLE, "font.size", 9.5)
    redraw()
    capsys.readouterr()
    assert call(check, unpacked) == 1
    out = capsys.readouterr().out
    text = "was drawn anew here, by revision another, and differs from what was packed; unpack"
    assert f"  {unpacked / 'figures/respo/fig3.png'}: {text} again" in out
    assert f"  {unpacked / 'figures/respo/fig3.sources.json'}: {text} again" in out


def test_damage_of_what_was_drawn_anew(unpacked, redraw, capsys):
    """Its record is honest: of the file itself it knows nothing."""
    redraw()
    path = unpacked / "figures/respo/fig3.pdf"
    path.write_bytes(path.read_bytes().replace(b"obj", b"obi", 1))
    capsys.readouterr()
    assert call(check, unpacked) == 1
    out = capsys.readouterr().out
    assert f"  {path}: is not the file that MANIFEST.json lists; unpack again\n" in out
    assert "1 damaged, 0 missing" in out


@pytest.mark.parametrize("change", ["damaged", "no product", "edited"])
def test_a_record_that_is_not_that_of_what_was_packed(unpacked, capsys, change):
    path = unpacked / "figures/respo/fig3.sources.json"
    record = {key: value for key, value in read_json(path).items() if key != "self_sha256"}
    record["environment"] = {"code": "another"}
    match change:
        case "damaged":
            path.write_text(path.read_text().replace("sources", "sourcez", 1))
        case "no product":
            write_record(path, record | {"products": {}})
        case _:
            write_record(path, record | {"sources": {**record["sources"], "study.yaml": "0"}})
    assert call(check, unpacked) == 1
    assert "fig3" in capsys.readouterr().out


def test_a_flipped_bit_is_named(unpacked, capsys):
    path = unpacked / CELL / "scores.parquet"
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    (unpacked / "figures/respo/fig3.pdf").unlink()
    (unpacked / "more.txt").touch()
    capsys.readouterr()
    assert call(check, unpacked) == 1
    out = capsys.readouterr().out
    assert f"  {path}: is not the file that MANIFEST.json lists; unpack again\n" in out
    assert "  figures/respo/fig3.pdf: MANIFEST.json lists it: unpack again\n" in out
    assert f"  {unpacked / 'more.txt'}: MANIFEST.json does not list it\n" in out
    assert "snakemake" not in out
    assert f"{unpacked}: 1 damaged, 1 missing, of " in out


def test_without_responses_no_response_is_in_the_pack(study_copy, tmp_path, capsys):
    """Neither in a file of its own nor in the page, which shows some."""
    assert call(module, study_copy, "--out", tmp_path / "x.tar.gz") == 0
    out = capsys.readouterr().out
    assert "without responses, and so without explore.html; --generations packs both\n" in out
    shown = gzip.decompress(base64.b64decode(PAGE.search(page_of(study_copy))[1]))
    assert b'"response"' in shown
    with tarfile.open(tmp_path / "x.tar.gz") as archive:
        names = [member.name for member in archive.getmembers()]
        assert not [name for name in names if PAGE.search(archive.extractfile(name).read())]


def test_the_page_is_made_from_a_pack_without_responses(unpacked, capsys):
    assert call(page, "--study", unpacked) == 0
    shown = gzip.decompress(base64.b64decode(PAGE.search(page_of(unpacked))[1]))
    assert b'"samples"' in shown
    assert b'"response"' not in shown
    capsys.readouterr()
    assert call(check, unpacked) == 0
    assert "foreign" not in capsys.readouterr().out


def page_of(folder):
    return (folder / "explore.html").read_bytes()


def test_responses_go_if_asked_for(study_copy, tmp_path, monkeypatch, capsys):
    out = tmp_path / "all.tar.gz"
    assert call(module, study_copy, "--out", out, "--generations") == 0
    assert "without" not in capsys.readouterr().out
    with tarfile.open(out) as archive:
        assert f"mini/{CELL}/generations.parquet" in archive.getnames()
    (tmp_path / "there/results").mkdir(parents=True)
    subprocess.run(["tar", "xf", out], cwd=tmp_path / "there/results", check=True)
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
    assert call(table, "respo/table1", "--study", study_copy, "--reference", REFERENCE) == 0
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


@pytest.mark.parametrize("name", [*(f"a{end}" for end in SEARCHED), "initial/m/initial.json"])
def test_this_users_own_words_are_found_in_any_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr(Path, "home", lambda: Path("/home/jane"))
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"data": "/home/jane/x"}')
    with pytest.raises(UserError, match="holds '/home/jane'"):
        check_private(name, path)


@pytest.mark.parametrize("name", ["a.pdf", "a.csv"])
def test_the_name_of_this_machine_is_found(tmp_path, monkeypatch, name):
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    monkeypatch.setattr("socket.gethostname", lambda: "janes-laptop")
    (tmp_path / name).write_text("made on janes-laptop")
    with pytest.raises(UserError, match="holds 'janes-laptop', which tells of this machine"):
        check_private(name, tmp_path / name)
    # One as short as a word is looked for nowhere: it may be that word.
    monkeypatch.setattr("socket.gethostname", lambda: "laptop")
    check_private(name, tmp_path / name)


def test_every_kind_of_file_of_a_pack_is_searched(packed):
    with tarfile.open(packed) as archive:
        assert {Path(name).suffix for name in archive.getnames()} == {*SEARCHED}


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
