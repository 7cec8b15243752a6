import os

from respo.config.outdated import renew_outdated


def refuse():
    raise AssertionError("the text of a file that does not exist is not needed")


def test_only_files_with_another_text_are_renewed(tmp_path):
    same, other, absent = (tmp_path / name for name in ("same", "other", "absent"))
    for path in (same, other):
        # Another text: a folder copied from seed 1 to seed 2, say.
        path.write_text("seed: 1\n")
        os.utime(path, (1, 1))
    texts = {same: lambda: "seed: 1\n", other: lambda: "seed: 2\n", absent: refuse}
    assert renew_outdated({str(path): text for path, text in texts.items()}) == [str(other)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "same"]
    assert same.stat().st_mtime == 1
    assert other.read_text() == "seed: 2\n"
    # Newer than the results that were made from the old text.
    assert other.stat().st_mtime > 1


def test_bytes_that_are_no_text_are_outdated(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe")
    assert renew_outdated({str(path): lambda: "seed: 1\n"}) == [str(path)]
    assert path.read_text() == "seed: 1\n"
