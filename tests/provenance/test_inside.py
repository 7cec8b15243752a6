import os

import pytest

from respo.provenance.inside import is_inside, links_out, wrong_file


@pytest.mark.parametrize("name", ["a", "a/b.json", "..a", "a..b/c", " "])
def test_names_of_files_of_the_folder(name):
    assert is_inside(name)


@pytest.mark.parametrize(
    "name", ["/a", "..", "../a", "a/../b", "a//b", "./a", "a/", "", ".", "a\0b"]
)
def test_names_that_are_none(name):
    assert not is_inside(name)


def test_links(tmp_path):
    """Those that stay in the folder are like files; others are followed only where they may be."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "file").touch()
    (root / "within").symlink_to("file")
    (root / "out").symlink_to("../outside/file")
    (root / "folder").symlink_to(outside)
    (root / "nothing").symlink_to("absent")
    os.mkfifo(outside / "pipe")
    out = "leads out of the folder, by a link; put the file itself here"
    pipe = "is no regular file"
    expected = {
        "file": (None, None),
        "absent": (None, None),
        "within": (None, None),
        "out": (out, None),
        "folder/file": (out, None),
        "folder/pipe": (out, pipe),
        "nothing": ("is a link to nothing", "is a link to nothing"),
    }
    for name, texts in expected.items():
        assert (wrong_file(root, root / name), wrong_file(root, root / name, True)) == texts, name
    assert list(links_out(root)) == [root / "folder", root / "out"]
