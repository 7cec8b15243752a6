import pytest

from respo.cli import UserError
from respo.reporting.methods import digest, read_methods

TEXT = "label: Mine\nobjective: grpo\nparameters: {}\nsource: mine\ndeviations: []\n"


def test_methods_by_name_and_by_file(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text(TEXT)
    methods = read_methods(f"grpo, respo,{mine}")
    assert list(methods) == ["grpo", "respo", "mine"]
    # What the file leaves out is filled in.
    assert methods["mine"].parameters == {
        "epsilon_low": 0.2, "epsilon_high": 0.2, "dual_clip": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("grop", r"--methods: 'grop' is neither a file nor .*respo.* \(did you mean 'grpo'\?\)"),
        ("nowhere/x.yaml", "--methods: 'nowhere/x.yaml' is neither a file nor one of .*grpo"),
        ("grpo,grpo", "--methods: 'grpo' stands twice"),
        (" ,", "--methods: names no method; write one of .*grpo"),
    ],
)
def test_bad_names(names, message):
    with pytest.raises(UserError, match=message):
        read_methods(names)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("objective: grpo", "objective: grop", r"mine.yaml: unknown objective: 'grop' \(did you"),
        ("{}", "{epsilon_low: 2}", "mine.yaml: grpo: epsilon_low = 2 is not allowed"),
        ("source: mine\n", "", "mine.yaml: source: is missing"),
    ],
)
def test_bad_files(tmp_path, old, new, message):
    mine = tmp_path / "mine.yaml"
    mine.write_text(TEXT.replace(old, new))
    with pytest.raises(UserError, match=message):
        read_methods(str(mine))


def test_the_digest_follows_the_parameters(tmp_path):
    digests = set()
    for number, parameters in enumerate(("{}", "{epsilon_low: 0.1}", "{epsilon_low: 0.2}")):
        mine = tmp_path / str(number) / "mine.yaml"
        mine.parent.mkdir()
        mine.write_text(TEXT.replace("{}", parameters))
        digests.add(digest(read_methods(str(mine))))
    assert len(digests) == 2  # 0.2 is the default
