"""YAML's traps are errors, never silently something else."""

import pytest

from respo.cli import UserError
from respo.config.yaml import canonical, read_yaml


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nanswer: 010\n", r":2: '010' is not a plain decimal integer"),
        ("a: 1:30\n", r":1: '1:30' is not a plain"),
        ("a: 1_000\n", r":1: '1_000' is not a plain"),
        ("a: 0x10\n", r":1: '0x10' is not a plain"),
        ("on: 1\n", r":1: the key 'on' is not text; quote it"),
        ("1: x\n", r":1: the key '1' is not text"),
        ("a: 1\nb: 2\na: 3\n", r":3: the key 'a' stands twice"),
        ("a: [1\n", r":2: "),
        ("a: !!python/object/apply:os.system ['true']\n", r":1: could not determine a constructor"),
        ("a: &x 1\nb: *x\n", r":2: \*x is not read; write the values out"),
        ("a: !!float abc\n", "could not convert"),
        ("a: 2024-13-45\n", "month must be in 1..12"),
        ("a: " + "9" * 5000 + "\n", "Exceeds the limit"),
        ("a: " + "[" * 5000, "nested too deeply"),
        ("- 1\n", "expected keys and values, found list"),
        ("", "expected keys and values, found NoneType"),
        ("just text", "expected keys and values, found str"),
    ],
)
def test_traps(tmp_path, text, expected):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=expected) as error:
        read_yaml(path)
    assert str(path) in str(error.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        read_yaml(tmp_path / "x.yaml")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UserError, match="Is a directory"):
        read_yaml(tmp_path)


def test_bytes_that_are_not_text(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(UserError, match="not UTF-8"):
        read_yaml(tmp_path / "x.yaml")


def test_a_byte_order_mark_is_harmless(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml(tmp_path / "x.yaml") == {"a": 1}


def test_canonical_text_reads_back_as_the_same_values(tmp_path):
    # 5e-05 is how Python prints it, and text to YAML 1.1.
    value = {"rate": 5e-05, "big": 1e22, "one": 1.0, "names": ["on", "010"], "none": None, "n": 3}
    path = tmp_path / "x.yaml"
    path.write_text(canonical(value))
    assert read_yaml(path) == value
    assert canonical(read_yaml(path)) == canonical(value)
