import subprocess
import sys

from respo.plan.__main__ import plan


def test_the_plan(small):
    assert "\n".join(plan(small())) == PLAN


# The numbers are those of test_costs.py.
PLAN = """\
Study small: Off-policy objectives, dense and mixture of experts

Jobs: 81; Slurm gets 30, the cells in groups
  configuration files         11
  prompts                      3
  initial weights, baselines   3
  training                     5
  evaluation: sampling        18
  evaluation: scoring         18
  evaluation: cells           18
  tables, figures, report      5

Estimated GPU-hours of training and evaluation; GB of the weights kept, and of the
states of a run while it is trained:
model     runs  GPUs  hours/run  training  evaluation  weights  states
big          5     8       10.2       369           8       76      20
released     0     -          -         0           1        3       -
total        5                        369           9       79

Disk: 81 GB kept, of it 2 GB of responses at most; and while runs are trained
up to 20 GB for each, 181 GB together if all are trained at once
Longest chain: 10.5 hours, without waiting for GPUs: big/grpo/N8/seed1 (10.2),
then math500 at 1024 (0.3)"""


def test_remarks(small):
    text = "\n".join(plan(small(big={"resources__minutes": 60}, math500={"rows": None})))
    assert (
        "big: a run of 10.2 hours is longer than resources.minutes allows (1.0 hours); raise it"
    ) in text
    assert "math500: has no estimate, since its file does not say the number of rows" in text


def command(config, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "respo.plan", "--config", str(config), *arguments],
        capture_output=True,
        text=True,
    )


def test_the_command(config, tmp_path):
    result = command(config, "--study", "tiny")
    assert result.returncode == 0, result.stderr
    assert "no estimate" in result.stdout
    assert result.stdout.endswith("\nLongest chain: no estimate\n")
    assert "of weights has no estimate" in result.stdout
    result = command(config, "--study", "tinny")
    assert result.returncode == 1
    assert "did you mean 'tiny'?" in result.stderr
    result = command(config, "--calibrate", str(tmp_path))
    assert result.returncode == 1
    assert result.stderr.startswith(f"error: {tmp_path}: is no run folder")
