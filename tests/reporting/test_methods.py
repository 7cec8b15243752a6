import pytest

from respo.cli import UserError
from respo.reporting.methods import digest, read_methods

TEXT = "label: Mine\nobjective: grpo\nparameters: {}\nsource: mine\ndeviations: []\n"


@pytest.fixture(autouse=True)
def _without_own_objectives(monkeypatch):
    monkeypatch.setenv("RESPO_METHODS", "")


def test_methods_by_name_and_of_ones_own(tmp_path):
    (tmp_path / "mine.yaml").write_text(TEXT)
    methods = read_methods("grpo, respo,mine", tmp_path)
    assert list(methods) == ["grpo", "respo", "mine"]
    # What the file leaves out is filled in.
    assert methods["mine"].parameters == {
        "epsilon_low": 0.2, "epsilon_high": 0.2, "dual_clip": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("grop", r"--methods: 'grop' is not a file of .*methods; .*respo.*did you mean 'grpo'"),
        ("grpo,grpo", "--methods: 'grpo' stands twice"),
        (" ,", "--methods: names no method; write some of .*grpo"),
    ],
)
def test_bad_names(names, message):
    with pytest.raises(UserError, match=message):
        read_methods(names)


def test_the_digest_follows_the_parameters(tmp_path):
    digests = set()
    for parameters in ("{}", "{epsilon_low: 0.1}", "{epsilon_low: 0.2}"):
        (tmp_path / "mine.yaml").write_text(TEXT.replace("{}", parameters))
        digests.add(digest(read_methods("mine", tmp_path)))
    assert len(digests) == 2  # 0.2 is the default
