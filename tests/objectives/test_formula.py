"""The hash of a formula: what changes it and what does not."""

import pytest

import respo.objectives as objectives
from respo.objectives import code_hash, registry, use_own
from respo.objectives.formula import source_hash


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """A folder of one's own with two files; `outer` uses `inner`."""
    monkeypatch.setattr(registry, "_OBJECTIVES", dict(registry._OBJECTIVES))
    monkeypatch.setattr(registry, "_imported_folder", None)
    monkeypatch.setenv("RESPO_METHODS", "")
    use_own(tmp_path)
    return tmp_path


OUTER = """
{line}
from respo.objectives.registry import objective


@objective("outer")
def outer(log_ratio_BT, advantage_B1):
    return log_ratio_BT
"""


def test_code_hash_follows_the_formula_and_nothing_else(new_objective):
    text = new_objective.read_text()
    before = code_hash("scaled_ratio")
    assert len(before) == 12
    assert int(before, 16) >= 0
    same = text.replace("# linear", "# no clip").replace("Return scale", "The ratio")
    same = same.replace('"""A new objective."""\n', '"""Another text."""\n\n\n# a comment\n')
    new_objective.write_text(same)
    assert code_hash("scaled_ratio") == before
    new_objective.write_text(text.replace("scale * log", "scale + log"))
    assert code_hash("scaled_ratio") != before
    new_objective.write_text(text.replace("= 2.0", "= 2.5"))
    assert code_hash("scaled_ratio") != before


@pytest.mark.parametrize(
    "line",
    [
        "from respo_own.inner import half",
        "from .inner import half",
        "from . import inner",
        "import respo_own.inner as inner",
    ],
)
def test_code_hash_follows_files_beside_it(own_folder, line):
    inner, outer = own_folder / "inner.py", own_folder / "outer.py"
    inner.write_text("half = 0.5\n")
    outer.write_text(OUTER.format(line=line))
    before = code_hash("outer")
    inner.write_text("half = 0.5  # a comment\n")
    assert code_hash("outer") == before
    inner.write_text("half = 0.25\n")
    assert code_hash("outer") != before


@pytest.mark.parametrize("line", ["from .sub.deep import half", "from respo_own.sub import deep"])
def test_code_hash_follows_files_in_folders_beside_it(own_folder, line):
    (own_folder / "sub").mkdir()
    (own_folder / "sub" / "deep.py").write_text("half = 0.5\n")
    init = own_folder / "sub" / "__init__.py"
    init.write_text("from . import deep\n")
    (own_folder / "outer.py").write_text(OUTER.format(line=line))
    hashes = [code_hash("outer")]
    (own_folder / "sub" / "deep.py").write_text("half = 0.25\n")
    hashes.append(code_hash("outer"))
    init.write_text("from . import deep\n\nhalf = 1\n")
    hashes.append(code_hash("outer"))
    assert len(set(hashes)) == 3


@pytest.mark.parametrize(
    "source",
    [
        "from .maker import make\nobjective('outer')(make(0.5))\n",
        "from .maker import half_of\n\n\n@objective('outer')\n@half_of\n"
        "def outer(log_ratio_BT):\n    return 0.5 * log_ratio_BT\n",
    ],
)
def test_code_hash_follows_the_file_that_registers(own_folder, source):
    (own_folder / "maker.py").write_text(
        "import functools\n\n\n"
        "def make(factor):\n"
        "    def scaled(log_ratio_BT):\n        return factor * log_ratio_BT\n\n    return scaled\n"
        "\n\ndef half_of(function):\n"
        "    @functools.wraps(function)\n"
        "    def half(log_ratio_BT):\n        return function(log_ratio_BT) / 2\n\n"
        "    return half\n"
    )
    head = "from respo.objectives.registry import objective\n"
    (own_folder / "outer.py").write_text(head + source)
    before = code_hash("outer")
    (own_folder / "outer.py").write_text(head + source.replace("0.5", "0.7"))
    assert code_hash("outer") != before


@pytest.mark.parametrize(
    "line",
    [
        "from respo.objectives.vespo import vespo",
        "from respo.objectives import vespo",
        "import respo.objectives.vespo as vespo",
    ],
)
def test_code_hash_follows_objectives_of_the_package(own_folder, line):
    outer = own_folder / "outer.py"
    outer.write_text(OUTER.format(line=line))
    with_vespo = code_hash("outer")
    # The same line names grpo: only the imported file differs, but for its name.
    outer.write_text(
        OUTER.format(line=line.replace("vespo", "grpo").replace("grpo as", "vespo as"))
    )
    assert code_hash("outer") != with_vespo


@pytest.mark.parametrize("name", ["parameters.py", "registry.py", "loss.py"])
def test_a_file_of_ones_own_may_be_called_like_one_of_ours(own_folder, name):
    file = own_folder / name
    file.write_text(OUTER.format(line="scale = 1"))
    before = code_hash("outer")
    file.write_text(OUTER.format(line="scale = 2"))
    assert code_hash("outer") != before


def test_an_encoding_of_ones_own(own_folder):
    text = OUTER.format(line="# é").replace("\n", "# -*- coding: latin-1 -*-\n", 1)
    (own_folder / "outer.py").write_bytes(text.encode("latin-1"))
    assert len(code_hash("outer")) == 12


def test_code_hash_tells_the_objectives_apart():
    names = objectives.objective_names()
    assert len({code_hash(name) for name in names}) == len(names)


def test_source_hash_without_docstrings_of_classes_and_of_empty_functions():
    with_text = 'class A:\n    "text"\n    def f(self):\n        "more"\n'
    without = "class A:\n    def f(self):\n        pass\n"
    assert source_hash(with_text) == source_hash(without)
