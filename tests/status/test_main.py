"""What is printed of results folders that are written by hand, and of bad input."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from respo.config import ResolvedStudy, Run
from respo.status import __main__ as command_line
from respo.status.overview import look
from respo.status.text import duration, lines

CONFIG = Path(__file__).parents[2] / "config"
MODEL = "qwen3-tiny"


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["respo.status", *arguments])
    command_line.main()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def half_done(study: ResolvedStudy, folder: Path, trained: Callable[[Run], None]) -> Path:
    """Trained: grpo at N = 8, with all cells of seed 1 and one of seed 2, of which one failed.

    Of the others, one has stopped, two have failed with one message and one runs elsewhere.
    """
    for name in ("train/chain", "held_out/chain-easy", "held_out/chain-hard"):
        write(folder / f"data/{name}.parquet", "")
    write(folder / f"initial/{MODEL}/initial.json", "{}")
    for seed, benchmarks in (1, study.study.benchmarks), (2, ["chain-easy"]):
        run = Run(MODEL, "grpo", 8, seed)
        trained(run)
        for benchmark in benchmarks:
            write(run.cell(folder, 128, benchmark), "{}")
    write(run.cell(folder, 128, "chain-hard").with_name("generations.parquet"), "")
    write(
        folder / f"logs/eval/{run.name}/128/chain-hard.score.log",
        "error: x.parquet: the disk is full\n",
    )
    stopped = Run(MODEL, "respo", 32, 1).folder(folder)
    (stopped / "checkpoints" / "state" / "60").mkdir(parents=True)
    for seed in (1, 2):
        log = folder / f"logs/train/{MODEL}/gspo/N16/seed{seed}.log"
        write(log, "error: m: the loss is nan\n")
    running = Run(MODEL, "vespo", 8, 2)
    write(running.folder(folder) / ".lock", "process 1 on gpu07\n")
    write(
        folder / f"logs/train/{running.name}.log",
        "m  update 12/128  mean reward +0.1  2.0 s/update  232 s left\n",
    )
    write(folder / "figures/respo/fig1.png", "")
    write(folder / "figures/respo/fig1.pdf", "")
    write(folder / "tables/respo/table1.md", "")
    return folder


HALF_DONE = """\
Study tiny: Off-policy objectives on a laptop; results in {folder}
data 3/4, initial weights 1/1, runs trained 2/26, cells evaluated 4/81, tables 0/{tables}, \
figures 1/{figures}, report 0/1
Runs: 1 evaluated, 1 trained, 1 training (update/of ~time left), 1 stopped (continue when the \
study is started again), 2 failed (see below), 20 waiting

qwen3-tiny  N=1        N=8                             N=16            N=32
  as it comes: waiting
  grpo      2 waiting  evaluated, trained (1/3 cells)  2 waiting       2 waiting
  gspo                 2 waiting                       2 failed 0/128  2 waiting
  vespo                waiting, 12/128 ~4m             2 waiting       2 waiting
  respo                2 waiting                       2 waiting       stopped 60/128, waiting
Runs of a cell: seeds 1, 2 in this order, equal neighbours counted together.

On other machines:
  qwen3-tiny/vespo/N8/seed2  running on gpu07

Failed, with the last words of the log:
  {folder}/logs/eval/qwen3-tiny/grpo/N8/seed2/128/chain-hard.score.log
    error: x.parquet: the disk is full
  {folder}/logs/train/qwen3-tiny/gspo/N16/seed1.log and 1 more
    error: m: the loss is nan
"""


def test_a_study_half_done(
    study: ResolvedStudy, half_done: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    call(monkeypatch, "--study", str(half_done))
    names = study.study
    assert capsys.readouterr().out == HALF_DONE.format(
        folder=half_done, tables=len(names.tables), figures=len(names.figures)
    )


def test_nothing_is_written(half_done: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def state() -> dict[Path, tuple[float, int]]:
        found = [half_done, *half_done.rglob("*")]
        return {path: (path.stat().st_mtime, path.stat().st_size) for path in found}

    before = state()
    call(monkeypatch, "--study", str(half_done))
    assert capsys.readouterr().out
    assert state() == before


def test_json(half_done: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    call(monkeypatch, "--study", str(half_done), "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["cells"] == {"done": 4, "of": 81}
    states = {
        (r["run"]["method"], r["run"]["staleness"], r["run"]["seed"]): r for r in found["runs"]
    }
    assert states["vespo", 8, 2]["training"] == {
        "state": "running",
        "done": 12,
        "total": 128,
        "seconds_left": 232.0,
        "message": "on gpu07",
    }


def test_in_a_narrow_terminal_each_cell_has_a_line(study: ResolvedStudy, half_done: Path) -> None:
    shown = list(lines(look(study, half_done), width=60, colour=False))
    assert "qwen3-tiny" in shown
    assert "  grpo N=8    evaluated, trained (1/3 cells)" in shown
    assert "  respo N=32  stopped 60/128, waiting" in shown
    assert not any(line.startswith("  gspo N=1 ") for line in shown)  # there is no such run


@pytest.mark.parametrize("width", [None, 20])
def test_baselines_alone(study: ResolvedStudy, tmp_path: Path, width: int | None) -> None:
    nothing: dict[str, list[str]] = {"methods": [], "extra_runs": [], "staleness": [], "seeds": []}
    alone = study.model_copy(update={"study": study.study.model_copy(update=nothing)})
    write(tmp_path / f"{MODEL}/baseline/N0/seed0/train.json", "{}")
    shown = list(lines(look(alone, tmp_path), width, colour=False))
    assert shown[2:] == [
        "Runs: none",
        "",
        "qwen3-tiny",
        "  initial weights: waiting",
        "  as it comes: 0/3 cells",
    ]


def test_cells_at_work(study: ResolvedStudy, half_done: Path) -> None:
    """One is generated, one was stopped, and the scoring of a third has failed."""
    run = Run(MODEL, "grpo", 8, 2)
    for benchmark in ("chain-easy", "chain-medium"):
        run.cell(half_done, 128, benchmark).unlink(missing_ok=True)
    logs = half_done / f"logs/eval/{run.name}/128"
    write(logs / "chain-easy.generate.log", "120/512 responses  9,000 tokens/s  150 s left\n")
    write(run.cell(half_done, 128, "chain-medium").parent / ".shards/a/1.parquet", "")
    text = "64/512 responses are there already\ninterrupted; the next start continues\n"
    write(logs / "chain-medium.generate.log", text)
    shown = list(lines(look(study, half_done), width=None, colour=False))
    assert "Runs: 1 evaluated, 1 evaluating, 1 training (update/of ~time left), 1 st" in shown[2]
    assert any("  2 waiting  evaluated, evaluating (0/3 cells)  " in line for line in shown)
    place = shown.index("\nEvaluation (responses/of ~time left):")
    assert shown[place + 1 : place + 3] == [
        f"  {run.name}/128/chain-easy    generating 120/512 ~2m",
        f"  {run.name}/128/chain-medium  stopped generating 64/512",
    ]


def test_many_cells_at_work_are_cut_short(
    study: ResolvedStudy, folder: Path, trained: Callable[[Run], None]
) -> None:
    for run in study.runs()[:4]:
        trained(run)
        for benchmark in study.benchmarks:
            write(folder / f"logs/eval/{run.name}/128/{benchmark}.generate.log", "")
    shown = list(lines(look(study, folder), width=None, colour=False))
    assert shown[-1] == "  and 4 more"
    assert shown[-2].endswith("  generating")


def test_seeds_that_differ_from_cell_to_cell(study: ResolvedStudy, folder: Path) -> None:
    status = look(study, folder)
    more = replace(status.runs[-1], run=replace(status.runs[-1].run, seed=3))
    shown = list(lines(replace(status, runs=[*status.runs, more]), width=None, colour=False))
    assert shown[-1] == "Runs of a cell: seeds in this order, equal neighbours counted together."
    alone = replace(status, runs=[s for s in status.runs if s.run.seed == 2])
    assert not any("Runs of a cell" in line for line in lines(alone, width=None, colour=False))


def test_colours(study: ResolvedStudy, half_done: Path) -> None:
    shown = "\n".join(lines(look(study, half_done), width=None, colour=True))
    assert "\x1b[32mevaluated\x1b[0m" in shown
    assert "\x1b[33mstopped 60/128\x1b[0m, \x1b[2mwaiting\x1b[0m" in shown


def test_a_warm_start_that_was_killed(study: ResolvedStudy, folder: Path) -> None:
    # No process has this number: the kernel's end before it.
    write(folder / f"initial/{MODEL}/.lock", f"process {2**22} on {socket.gethostname()}\n")
    log = folder / f"logs/initial/{MODEL}.log"
    write(log, "tiny/initial/m  step 75/900  loss 0.5  0.1 s/step  83 s left\n")
    shown = list(lines(look(study, folder), width=None, colour=False))
    assert "  initial weights: stopped at 75/900 (begins again with the study)" in shown


def test_many_messages_are_cut_short(study: ResolvedStudy, folder: Path) -> None:
    for number, table in enumerate(study.study.tables[:10]):
        write(folder / "logs" / "tables" / f"{table}.log", f"error: number {number}\n")
    shown = list(lines(look(study, folder), width=None, colour=False))
    assert shown[-2:] == ["    error: number 7", "  and 2 more messages"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119.4, "119s"), (120, "2m"), (7199, "120m"), (7200, "2.0h"), (172800, "2.0d")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_study_that_was_never_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    call(monkeypatch, "--study", "tiny", "--results", str(tmp_path), "--config", str(CONFIG))
    assert "Runs: 26 waiting" in capsys.readouterr().out
    call(monkeypatch, "--study", str(tmp_path / "tiny"), "--config", str(CONFIG))
    assert "  initial weights: waiting" in capsys.readouterr().out


def test_the_study_of_the_settings(
    half_done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    write(tmp_path / "config/config.yaml", "study: tiny\nresults: results\ndevice: cpu\n")
    monkeypatch.chdir(tmp_path)
    call(monkeypatch)
    assert "Runs: 1 evaluated, 1 trained" in capsys.readouterr().out


def test_a_folder_of_another_version(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """Today's study is shown where it is known; what is wrong with the folder where it is not."""
    (folder / "study.yaml").write_text("name: tiny\n")
    call(monkeypatch, "--study", str(folder), "--config", str(CONFIG))
    assert "Runs: 26 waiting" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"study\.yaml: .*missing[^$]*written anew"):
        call(monkeypatch, "--study", str(folder), "--config", str(tmp_path))


def test_an_unknown_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"'tony' is not a file of .*tiny"):
        call(monkeypatch, "--study", "tony", "--results", str(tmp_path), "--config", str(CONFIG))


def test_outside_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        SystemExit, match=r"config\.yaml: no such file; start this in the project's"
    ):
        call(monkeypatch)


def test_torch_is_not_loaded(half_done: Path) -> None:
    """It takes seconds, on a login node more."""
    code = "import sys; from respo.status.__main__ import main; main(); assert 'torch' not in "
    code += "sys.modules"
    words = [sys.executable, "-c", code, "--study", str(half_done)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
