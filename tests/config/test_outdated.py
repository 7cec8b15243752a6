import os

from respo.config.outdated import remove_outdated


def refuse():
    raise AssertionError("the text of a file that does not exist is not needed")


def test_only_files_with_another_text_are_removed(tmp_path):
    same, other, absent = (str(tmp_path / name) for name in ("same", "other", "absent"))
    (tmp_path / "same").write_text("seed: 1\n")
    os.utime(same, (1, 1))
    # A folder copied from seed 1 to seed 2, say, or a file cut short.
    (tmp_path / "other").write_text("seed: 1\n")
    texts = {same: lambda: "seed: 1\n", other: lambda: "seed: 2\n", absent: refuse}
    assert remove_outdated(texts) == [other]
    assert [path.name for path in tmp_path.iterdir()] == ["same"]
    assert (tmp_path / "same").stat().st_mtime == 1


def test_bytes_that_are_no_text_are_outdated(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe")
    assert remove_outdated({str(path): lambda: "seed: 1\n"}) == [str(path)]
