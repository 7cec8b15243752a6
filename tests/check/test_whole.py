"""Each kind of damage in a copy of a finished study."""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from respo.check.folder import Folder
from respo.check.whole import check_folder
from respo.cli import UserError
from respo.files import read_json, seal, sha256_of, write_json, write_record
from respo.parquet import made_from, read_parquet, write_parquet
from respo.provenance.sources import write_sources
from respo.weight_files import write_sums

RUN = "mini/respo/N2/seed1"
CELL = f"{RUN}/eval/2/easy"
# Nothing depends on these, and no hash of them is taken.
FREE = ("report.html", ".lock", "finished.parquet")


def check(path, **options):
    folder = Folder(path)
    check_folder(folder, **options)
    return folder.found


def names(findings):
    return [finding.name for finding in findings]


def test_a_finished_study_is_whole(finished_study):
    folder = Folder(finished_study)
    counts = check_folder(folder)
    assert [(f.kind, f.name) for f in folder.found.all] == [("note", "report.html")]
    assert folder.found.ok
    assert (counts.cells, counts.tables) == (3, 1)


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_any_damage_of_any_file_is_found(study_copy, damage):
    """Of every file the half that is left, or one bit in the middle of what it holds."""
    rng = random.Random(0)
    files = [path for path in sorted(study_copy.rglob("*")) if path.is_file()]
    for path in files:
        # One run is as good as two.
        if path.name in FREE or "grpo" in path.parts:
            continue
        whole = path.read_bytes()
        damaged = bytearray(whole)
        if damage == "cut":
            damaged = damaged[: len(whole) // 2]
        else:
            place = rng.randrange(len(whole) // 4, 3 * len(whole) // 4)
            damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        name = path.relative_to(study_copy).as_posix()
        # Two that hold a hash of each other accuse one of them and name both.
        told = " ".join(told_of(study_copy))
        named = path.name if path.name == "SHA256SUMS" else name
        assert named in told, (name, told)
        path.write_bytes(whole)


def told_of(path: Path) -> list[str]:
    """Return what is damaged in a folder, and why; of a bad study.yaml the message."""
    try:
        wrong = check(path).of("damaged")
    except UserError as error:
        return [str(error)]
    assert all(f.target or "sha256sum" in f.text or "copy it" in f.text for f in wrong)
    return [text for finding in wrong for text in (finding.name, finding.text)]


def remade(path: Path, **changes: object) -> None:
    """Write a Parquet file anew with another value or provenance, its checksums right."""
    table = read_parquet(path)
    provenance = made_from(table)
    for key, value in changes.items():
        if key in provenance:
            provenance[key] = value
        else:
            values = [value, *table[key].to_pylist()[1:]]
            column = pa.array(values, table.schema.field(key).type)
            table = table.set_column(table.column_names.index(key), key, column)
    write_parquet(path, table, provenance)


def appended(path: Path, more: bytes) -> None:
    path.write_bytes(path.read_bytes() + more)


def other_weights(folder: Path) -> None:
    """Put other weights in place of a checkpoint's, and into its list of hashes."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4] + b"else")
    write_sums(folder)


def edited(path: Path, **changes: object) -> None:
    """Write a record anew with other values, its own hash right."""
    record = {key: value for key, value in read_json(path).items() if key != "self_sha256"}
    write_record(path, record | changes)


@pytest.mark.parametrize(
    ("change", "name", "text"),
    [
        (
            lambda at: remade(at / f"{CELL}/generations.parquet", response="other"),
            f"{CELL}/generations.parquet",
            f"is not the file that {CELL}/scores.parquet was made from",
        ),
        (
            lambda at: remade(at / f"{CELL}/generations.parquet", checkpoint_sha256="0"),
            f"{CELL}/generations.parquet",
            f"checkpoint_sha256: is not that of {RUN}/train.json at update 2",
        ),
        (
            lambda at: remade(at / f"{CELL}/scores.parquet", correct=True),
            f"{CELL}/scores.parquet",
            f"is not the file that {CELL}/cell.json was made from",
        ),
        (
            lambda at: edited(at / f"{CELL}/cell.json", mean_response_tokens=7.0),
            f"{CELL}/cell.json",
            "mean_response_tokens: is 7.0, but ",
        ),
        (
            lambda at: edited(at / f"{CELL}/cell.json", method="grpo"),
            f"{CELL}/cell.json",
            "method: is 'grpo', but 'respo' its place in the folder says",
        ),
        (
            lambda at: edited(at / f"{CELL}/cell.json", problems=[]),
            f"{CELL}/cell.json",
            "problems: are not what comes out of",
        ),
        (
            lambda at: edited(at / f"{RUN}/train.json", update=1),
            f"{RUN}/train.json",
            "the training ended at update 1 of 2",
        ),
        (
            lambda at: edited(at / f"{RUN}/train.json", initial_sha256="0"),
            f"{RUN}/train.json",
            "initial_sha256: is not that of initial weights",
        ),
        (
            lambda at: remade(at / f"{RUN}/metrics.parquet", score=0.25),
            f"{RUN}/metrics.parquet",
            f"is not the file that was written with {RUN}/train.json",
        ),
        (
            lambda at: appended(at / f"{RUN}/config.yaml", b"# edited\n"),
            f"{RUN}/config.yaml",
            f"is not the file that {RUN}/train.json was made from: it was changed after that was "
            "made. A start writes it anew",
        ),
        (
            lambda at: remade(at / "data/held_out/easy.parquet", answer="5"),
            "data/held_out/easy.parquet",
            "is not the file that mini/baseline/N0/seed0/eval/0/easy/generations.parquet",
        ),
        (
            lambda at: appended(at / "tables/respo/table1.csv", b"\n"),
            "tables/respo/table1.csv",
            "was changed after it was made: tables/respo/table1.sources.json tells",
        ),
        (
            lambda at: edited(at / "explore.sources.json", sources={"study.yaml": "0"}),
            "explore.html",
            "was made from another study.yaml than lies there now",
        ),
        (
            lambda at: appended(at / f"{RUN}/checkpoints/2/tokenizer.json", b"\n"),
            f"{RUN}/checkpoints/2/tokenizer.json",
            "was changed or damaged: its hash is not that in SHA256SUMS",
        ),
        (
            lambda at: (at / f"{RUN}/checkpoints/2/more.bin").touch(),
            f"{RUN}/checkpoints/2/SHA256SUMS",
            "does not list more.bin",
        ),
        (
            lambda at: other_weights(at / f"{RUN}/checkpoints/2"),
            f"{RUN}/checkpoints/2/model.safetensors",
            f"is not the weights that {RUN}/train.json names",
        ),
    ],
)
def test_files_that_do_not_belong_together(study_copy, change, name, text):
    """Each is whole in itself."""
    change(study_copy)
    found = {finding.name: finding.text for finding in check(study_copy).of("damaged")}
    assert found[name].startswith(text)


def test_a_cell_of_the_same_values_in_other_bytes_is_blamed_itself(study_copy):
    """And not table and page, which hold the hash of its bytes: they are as they were."""
    path = study_copy / CELL / "cell.json"
    appended(path, b"\n")
    (finding,) = check(study_copy).of("damaged")
    assert (finding.name, finding.target) == (f"{CELL}/cell.json", f"{CELL}/cell.json")
    assert finding.text.startswith("was edited after it was written: its values are as they were")
    write_record(path, read_json(path))
    assert check(study_copy).ok


def test_what_is_missing_is_named_with_its_target(study_copy):
    tokenizer = f"{RUN}/checkpoints/2/tokenizer.json"
    lost = (f"{CELL}/cell.json", f"{RUN}/metrics.parquet", "figures/respo/fig3.pdf", tokenizer)
    for name in lost:
        (study_copy / name).unlink()
    shutil.rmtree(study_copy / "mini/grpo")
    found = [(finding.name, finding.target) for finding in check(study_copy).of("missing")]
    # Of a run and a cell one name is enough: what is made of them cannot be there.
    assert found == [
        ("mini/grpo/N2/seed1/train.json", "mini/grpo/N2/seed1/train.json"),
        (f"{RUN}/metrics.parquet", f"{RUN}/train.json"),
        (f"{CELL}/cell.json", f"{CELL}/cell.json"),
        ("figures/respo/fig3.pdf", "figures/respo/fig3.png"),
        (tokenizer, f"{RUN}/train.json"),
    ]


def test_what_belongs_to_nothing_is_named(study_copy):
    shutil.copytree(study_copy / RUN, study_copy / "mini/respo/N4/seed1")
    (study_copy / ".explore.html.abc.part").touch()
    (study_copy / "logs").mkdir()
    (study_copy / "logs/any.log").touch()
    found = check(study_copy)
    assert found.ok
    texts = {finding.name: finding.text for finding in found.of("foreign")}
    assert texts.pop(".explore.html.abc.part").startswith("was left by a writer that was killed")
    assert len(texts) > 10
    assert all(name.startswith("mini/respo/N4/seed1/") for name in texts)


def test_weights_can_be_left_unread(study_copy):
    path = study_copy / RUN / "checkpoints/2/model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert names(check(study_copy).of("damaged")) == [f"{RUN}/checkpoints/2/model.safetensors"]
    assert check(study_copy, skip_weights=True).ok
    path.write_bytes(whole[:-1])
    (finding,) = check(study_copy, skip_weights=True).of("damaged")
    assert finding.text.startswith("cut short or damaged")


def test_results_of_an_older_version_are_compared_as_far_as_they_tell(study_copy):
    (study_copy / RUN / "checkpoints/2/SHA256SUMS").unlink()
    train = study_copy / RUN / "train.json"
    write_json(
        train, {k: v for k, v in read_json(train).items() if k not in ("self_sha256", "outputs")}
    )
    for path in study_copy.rglob("*.sources.json"):
        path.unlink()
    found = check(study_copy)
    assert not found.of("damaged")
    notes = {finding.name: finding.text for finding in found.of("note")}
    assert notes[f"{RUN}/train.json"].startswith("has no self_sha256")
    assert notes[f"{RUN}/checkpoints/2"].startswith("has no SHA256SUMS")
    assert set(names(found.of("missing"))) == {
        "tables/respo/table1.sources.json",
        "figures/respo/fig3.sources.json",
        "explore.sources.json",
    }


def test_made_up_results_are_compared_but_for_what_is_made_up(study_copy):
    path = study_copy / CELL / "cell.json"
    cell = read_json(path)
    edited(path, standard_error=0.5, made_from=cell["made_from"] | {"synthetic": True})
    assert f"{CELL}/cell.json" not in names(check(study_copy).of("damaged"))


def test_the_last_digits_of_another_machine_are_a_note(study_copy):
    path = study_copy / CELL / "cell.json"
    edited(path, standard_error=read_json(path)["standard_error"] + 1e-13)
    found = check(study_copy)
    (note,) = (f for f in found.of("note") if f.name == f"{CELL}/cell.json")
    assert "differs in the last digits" in note.text


def test_a_table_that_this_code_makes_otherwise_is_a_note(study_copy):
    table, record = study_copy / "tables/respo/table1.md", "tables/respo/table1.sources.json"
    table.write_text(table.read_text().replace("Miniature", "Miniatures"))
    content = read_json(study_copy / record)
    products = content["products"] | {"tables/respo/table1.md": sha256_of(table)}
    edited(study_copy / record, products=products, environment={"code": "an old one"})
    found = check(study_copy)
    assert found.ok
    assert [f.text for f in found.of("note") if f.name != "report.html"] == [
        "this code makes another text of the same results; it was made by an old one"
    ]


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(UserError, match=r"study\.yaml: no such file; give the results folder"):
        Folder(tmp_path)
    (tmp_path / "study.yaml").touch()
    (tmp_path / "MANIFEST.json").write_text(json.dumps({"files": []}))
    with pytest.raises(
        UserError, match=r"MANIFEST\.json: is damaged: files: input should be a valid dict"
    ):
        Folder(tmp_path)
    manifest = {"files": {}}
    write_json(tmp_path / "MANIFEST.json", manifest | {"self_sha256": seal({"files": {"a": 1}})})
    with pytest.raises(UserError, match=r"MANIFEST\.json: was changed or damaged"):
        Folder(tmp_path)


def test_a_folder_of_one_cell_has_no_study_yet(study_copy, monkeypatch):
    (study_copy / "study.yaml").unlink()
    monkeypatch.chdir(study_copy.parents[1])
    with pytest.raises(UserError) as error:
        Folder(Path("results/mini"))
    command = "snakemake results/mini/study.yaml --config study=mini"
    assert str(error.value) == f"results/mini/study.yaml: no such file; `{command}` makes it"
    write_record(study_copy / "MANIFEST.json", {"files": {}})
    with pytest.raises(UserError, match=r"study\.yaml: no such file; unpack again"):
        Folder(study_copy)


TRAIN = f"{RUN}/train.json"


@pytest.mark.parametrize(
    ("name", "changes", "text"),
    [
        (f"{CELL}/cell.json", {"made_from": [1]}, "made_from: input should be a valid dictionary"),
        (TRAIN, {"checkpoints": [1]}, "checkpoints: input should be a valid dictionary"),
        (TRAIN, {"outputs": {"metrics.parquet": 1}}, "outputs.metrics.parquet: input should be"),
        ("explore.sources.json", {"products": [1]}, "products: input should be a valid dictionary"),
        ("explore.sources.json", {"sources": [1]}, "sources: input should be a valid dictionary"),
        ("explore.sources.json", {"sources": {"a": 1}}, "sources.a: input should be a valid str"),
        (
            "explore.sources.json",
            {"sources": {"/etc/passwd": "0"}},
            "sources./etc/passwd: '/etc/pa",
        ),
        (
            "explore.sources.json",
            {"products": {"../a": "0"}},
            "products.../a: '../a' is no name of",
        ),
    ],
)
def test_records_of_another_shape(study_copy, name, changes, text):
    edited(study_copy / name, **changes)
    found = {finding.name: finding.text for finding in check(study_copy).of("damaged")}
    assert found[name].startswith(f"was not written by this project: {text}")


def test_no_record_ends_the_check(study_copy):
    """All values of each record are replaced by others, the record's own hash right."""
    records = [CELL + "/cell.json", TRAIN, "initial/mini/initial.json", "explore.sources.json"]
    for name in records:
        path = study_copy / name
        whole, record = path.read_bytes(), read_json(path)
        del record["self_sha256"]
        for value in (None, "x", [1], {"x": 1}):
            edited(path, **dict.fromkeys(record, value))
            check(study_copy, skip_weights=True)
        write_json(path, [1])
        assert name in names(check(study_copy).of("damaged"))
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ({"files": {"study.yaml": 3}}, "files.study.yaml: input should be"),
        ({"files": {"study.yaml": {}}}, "files.study.yaml.sha256: field required"),
        ({"files": {"../study.yaml": {"sha256": "0"}}}, "'../study.yaml' is no name of a file"),
        ({"files": {}, "left_out": 3}, "left_out: input should be a valid list"),
    ],
)
def test_manifests_of_another_shape(study_copy, manifest, text):
    write_record(study_copy / "MANIFEST.json", manifest)
    with pytest.raises(UserError, match=r"MANIFEST\.json: is damaged: ") as error:
        Folder(study_copy)
    assert text in str(error.value)


@pytest.mark.parametrize(
    "name",
    [
        f"{CELL}/cell.json",
        f"{RUN}/metrics.parquet",
        f"{RUN}/checkpoints/2/model.safetensors",
        "explore.sources.json",
        "tables/respo/table1.md",
    ],
)
@pytest.mark.parametrize("what", ["pipe", "device", "folder", "dangling"])
def test_what_is_no_file_of_the_folder_is_not_read(study_copy, name, what):
    path = study_copy / name
    path.unlink()
    match what:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("nowhere")
    wrong = check(study_copy)
    found = {finding.name: finding.text for finding in wrong.of("damaged")}
    if "checkpoints" in name and what == "folder":
        assert not wrong.ok
    else:
        text = "is a link to nothing" if what == "dangling" else "is no regular file"
        assert found[name].startswith(text)


@pytest.mark.parametrize("name", ["study.yaml", TRAIN, "tables/respo/table1.md"])
@pytest.mark.parametrize("above", [False, True])
def test_a_pack_does_not_lead_out(study_copy, name, above):
    """A file, or the folder that it is in, is a link to elsewhere."""
    write_record(study_copy / "MANIFEST.json", {"files": {}})
    path = study_copy / name
    link = path.parent if above and path.parent != study_copy else path
    elsewhere = shutil.move(link, study_copy.parents[1] / "elsewhere")
    link.symlink_to(elsewhere)
    text = "leads out of the folder, by a link; put the file itself here"
    if name == "study.yaml":
        with pytest.raises(UserError, match=rf"study\.yaml: {text}"):
            Folder(study_copy)
    else:
        assert (name, text) in [(f.name, f.text) for f in check(study_copy).of("damaged")]


@pytest.mark.parametrize(
    "name",
    [
        RUN,
        "mini",
        f"{RUN}/checkpoints/2",
        "initial/mini/weights",
        f"{CELL}/cell.json",
        "study.yaml",
        "tables/respo/table1.md",
    ],
)
def test_what_was_moved_to_another_disk_is_followed(study_copy, name):
    link = study_copy / name
    elsewhere = Path(shutil.move(link, study_copy.parents[1] / "elsewhere"))
    link.symlink_to(elsewhere)
    found = check(study_copy)
    assert found.ok
    assert (name, f"is a link to {elsewhere}, followed") in [
        (link.name, link.text) for link in found.of("link")
    ]
    files = [elsewhere] if elsewhere.is_file() else elsewhere.rglob("*.*")
    for path in files:  # compared as if it lay in the folder
        if path.is_file() and path.name not in FREE and "grpo" not in path.parts:
            appended(path, b"x")
            assert not told_whole(study_copy), path
            path.write_bytes(path.read_bytes()[:-1])


def told_whole(path: Path) -> bool:
    """Tell whether nothing is wrong with a folder."""
    try:
        return check(path).ok
    except UserError:
        return False


def test_a_link_that_the_study_does_not_need_is_not_followed(study_copy):
    (study_copy / "more").symlink_to(study_copy.parents[1])
    (study_copy / "more.txt").symlink_to("/etc/passwd")
    found = check(study_copy)
    assert found.ok
    assert not found.of("link")
    assert names(found.of("foreign")) == ["more.txt"]


def test_many_links_are_one_line(study_copy):
    """As of a tool that keeps the content of files elsewhere."""
    folder = study_copy.parents[1] / "content"
    folder.mkdir()
    for number, path in enumerate(sorted((study_copy / CELL).glob("*.*"))):
        path.symlink_to(shutil.move(path, folder / str(number)))
    for number, path in enumerate(sorted((study_copy / "tables/respo").iterdir())):
        path.symlink_to(shutil.move(path, folder / f"table{number}"))
    found = check(study_copy)
    assert found.ok
    texts = [link.text for link in found.of("link")]
    assert len(texts) > 5
    assert {*texts} == {"is a link out of the folder, followed"}


def test_a_report_that_is_not_the_one_that_was_made(study_copy):
    files = {name: sha256_of(study_copy / name) for name in ("explore.html", "study.yaml")}
    report = study_copy / "report.html"
    write_sources(study_copy, "mini", [report], "0", files)
    assert not check(study_copy).all
    report.write_text("<html>other</html>\n")
    (finding,) = check(study_copy).of("damaged")
    assert (finding.name, finding.target) == ("report.html", "report.html")
    assert finding.text == "was changed after it was made: report.sources.json tells"
    write_sources(study_copy, "mini", [report], "0", files | {"explore.html": "0"})
    (finding,) = check(study_copy).of("damaged")
    assert finding.text == "was made from another explore.html than lies there now"
    appended(study_copy / "report.sources.json", b"x")
    (finding,) = check(study_copy).of("damaged")
    assert finding.name == "report.sources.json"


def test_a_study_that_is_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "study.yaml")
    with pytest.raises(UserError, match=r"study\.yaml: is no regular file"):
        Folder(tmp_path)


def test_checkpoints_that_the_record_names(study_copy):
    weights = read_json(study_copy / TRAIN)["checkpoints"]
    for others in ({"../../../etc": "0"}, {"3": "0"}):
        edited(study_copy / TRAIN, checkpoints=weights | others)
        (finding,) = (f for f in check(study_copy).of("damaged") if f.name == TRAIN)
        name = next(iter(others))
        assert (
            finding.text == f"checkpoints: {name!r} is no update at which the study saves weights"
        )
    edited(study_copy / TRAIN, checkpoints={"3": "0"})
    (finding,) = (f for f in check(study_copy).of("damaged") if f.name == TRAIN)
    assert finding.text == "checkpoints: lacks update 2 of the study"
    edited(study_copy / TRAIN, checkpoints=weights)
    folder = study_copy / RUN / "checkpoints/2"
    shutil.rmtree(folder)
    folder.touch()
    assert f"{RUN}/checkpoints/2" in names(check(study_copy).of("damaged"))


@pytest.mark.parametrize("file", ["tokenizer.json", "model.safetensors"])
def test_a_list_that_is_damaged_itself_is_written_anew_without_training(study_copy, file):
    """The weights are those of train.json, and the tokenizer is listed with other weights."""
    path = study_copy / RUN / "checkpoints/2/SHA256SUMS"
    whole = path.read_text()
    sha256 = next(line for line in whole.splitlines() if line.endswith(file))
    flipped = ("1" if sha256[0] == "0" else "0") + sha256[1:]
    for damaged in (whole.replace(sha256, flipped), whole.replace(file, "x"), "x" + whole):
        path.write_text(damaged)
        (finding,) = check(study_copy).of("damaged")
        assert (finding.name, finding.target) == (f"{RUN}/checkpoints/2/SHA256SUMS", None)
        command = finding.text[finding.text.index("(cd ") : finding.text.index(" writes the")]
        subprocess.run(["sh", "-c", command], check=True)
        assert path.read_text() == whole


def test_a_file_that_lies_beside_other_weights_is_copied(study_copy):
    path = study_copy / RUN / "checkpoints/2/tokenizer.json"
    appended(path, b" ")
    (finding,) = check(study_copy).of("damaged")
    start, other = finding.text.split("; copy it from ")
    assert start == "was changed or damaged: its hash is not that in SHA256SUMS"
    shutil.copy(other, path)
    assert check(study_copy).ok


def test_a_changed_study_is_blamed_and_not_what_was_made_from_it(study_copy):
    path = study_copy / "study.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    assert names(check(study_copy).of("damaged"))[0] == "study.yaml"
    assert not [n for n in names(check(study_copy).of("damaged")) if n.startswith("tables")]
