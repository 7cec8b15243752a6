"""Objectives of a folder outside the package."""

import pytest
import torch

import respo.objectives as objectives
from respo.objectives import coefficients, registry, use_own

OBJECTIVE = """
from respo.objectives.parameters import NonNegative
from respo.objectives.registry import objective


@objective("mine")
def mine(log_ratio_BT, *, scale: NonNegative = 2.0):
    return scale * log_ratio_BT.exp()
"""
BATCH = (torch.zeros(1, 2), torch.ones(1), torch.tensor([[1, 0]]))


@pytest.fixture(autouse=True)
def _no_objectives_stay(monkeypatch):
    monkeypatch.setattr(registry, "_OBJECTIVES", dict(registry._OBJECTIVES))
    monkeypatch.setattr(registry, "_imported_folder", None)
    monkeypatch.setenv("RESPO_METHODS", "")


@pytest.fixture
def own_folder(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    use_own(folder)
    return folder


def test_objectives_of_a_folder_of_ones_own(own_folder):
    (own_folder / "mine.py").write_text(OBJECTIVE)
    assert "mine" in objectives.objective_names()
    assert coefficients("mine", *BATCH).tolist() == [[2.0, 0.0]]
    assert [path.name for path in own_folder.iterdir()] == ["mine.py"]


def test_a_file_may_use_another(own_folder):
    (own_folder / "mine.py").write_text(
        OBJECTIVE.replace("import objective\n", "import objective\nfrom .zz import two\n").replace(
            "2.0", "two"
        )
    )
    (own_folder / "zz.py").write_text("two = 2.0\n")
    assert coefficients("mine", *BATCH)[0, 0] == 2.0


def test_one_folder_after_another(own_folder, tmp_path):
    (own_folder / "mine.py").write_text(OBJECTIVE)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.py").write_text(OBJECTIVE.replace("2.0", "3.0"))
    for folder, expected in ((own_folder, 2.0), (other, 3.0), (own_folder, 2.0)):
        use_own(folder)
        assert coefficients("mine", *BATCH)[0, 0] == expected


def test_without_the_variable_they_are_gone(own_folder, monkeypatch):
    (own_folder / "mine.py").write_text(OBJECTIVE)
    assert "mine" in objectives.objective_names()
    monkeypatch.delenv("RESPO_METHODS")
    assert "mine" not in objectives.objective_names()


def test_files_of_editors_are_passed_over(own_folder):
    (own_folder / ".#mine.py").symlink_to("nobody@nowhere")
    (own_folder / "._mine.py").write_bytes(b"\0\1")
    (own_folder / "sub").mkdir()
    (own_folder / "sub" / "mine.py").write_text("raise SystemExit")
    assert "grpo" in objectives.objective_names()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def broken(:\n", "mine.py: SyntaxError"),
        ("import no_such_module\n", "mine.py: ModuleNotFoundError"),
        (b"# caf\xe9\n", "mine.py: (SyntaxError|UnicodeDecodeError): .*; mend the file"),
        ("raise SystemExit(7)\n", "mine.py: SystemExit: 7; mend the file"),
        (OBJECTIVE.replace('"mine"', '"grpo"'), "'grpo' is already defined in .*grpo.py"),
        (OBJECTIVE.replace('"mine"', "5"), "mine.py: TypeError: objective 5: a name is letters"),
    ],
)
def test_a_bad_file_is_named_each_time(own_folder, monkeypatch, source, message):
    text = source if isinstance(source, bytes) else source.encode()
    (own_folder / "mine.py").write_bytes(text)
    (own_folder / "good.py").write_text(OBJECTIVE.replace('"mine"', '"good"'))
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            objectives.objective_names()
    monkeypatch.delenv("RESPO_METHODS")
    assert "good" not in objectives.objective_names()


def test_a_missing_folder_is_told(own_folder):
    own_folder.rmdir()
    with pytest.raises(ValueError, match=r"RESPO_METHODS: .*own is not a folder"):
        objectives.objective_names()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("return advantage_B1.squeeze(1)", r"shape \(B, T\) or \(B, 1\), .* shape \(3,\)"),
        ("return log_ratio_BT.t()", r"shape \(B, T\) .* not torch.float32 of shape \(2, 3\)"),
        ("return log_ratio_BT > 0", "real numbers .* not torch.bool"),
        ("return log_ratio_BT * 1j", "real numbers .* not torch.complex64"),
        ("return None", "real numbers .* not None"),
        ("return advantage_B1.abs_()", "it changes advantage_B1 in place"),
        ("return log_ratio_BT.clamp_(max=0)", "it changes log_ratio_BT in place"),
        ("return mask_BT.fill_(True).float()", "it changes mask_BT in place"),
    ],
)
def test_what_a_function_does_is_checked(own_folder, line, message):
    head, _, body = OBJECTIVE.partition("(log_ratio_BT, *,")
    text = f"{head}(log_ratio_BT, advantage_B1, mask_BT, *,{body}"
    text = text.replace("return scale * log_ratio_BT.exp()", line)
    (own_folder / "mine.py").write_text(text)
    with pytest.raises(ValueError, match=f"objective mine: .*{message}"):
        coefficients("mine", torch.zeros(3, 2), torch.ones(3), torch.ones(3, 2, dtype=torch.bool))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "return log_ratio_BT.sum().double()",
            r"a float64 vector, not torch.float64 of shape \(\)",
        ),
        ("return log_ratio_BT.sum(1)", "a float64 vector, not torch.float32"),
        ("return None", "a float64 vector, not None"),
    ],
)
def test_sums_are_checked(own_folder, line, message):
    (own_folder / "mine.py").write_text(
        "from respo.objectives.registry import objective\n\n\n"
        f"def sums(log_ratio_BT):\n    {line}\n\n\n"
        "@objective('mine', sums=sums)\n"
        "def mine(log_ratio_BT, batch_sums):\n    return log_ratio_BT\n"
    )
    for function in (coefficients, objectives.batch_sums):
        with pytest.raises(ValueError, match=message):
            function("mine", *BATCH)


def test_sums_for_an_objective_without_any():
    with pytest.raises(ValueError, match="grpo takes no batch_sums"):
        coefficients("grpo", *BATCH, batch_sums=torch.zeros(3, dtype=torch.float64))
