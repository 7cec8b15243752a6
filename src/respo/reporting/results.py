"""A results folder: its study, the result of each cell, the metrics of each run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, Field, ValidationError, model_validator

from respo.cli import UserError
from respo.config import Run, load_resolved_study
from respo.config.schema import Positive, Strict
from respo.files import read_json, sha256_of
from respo.parquet import made_from, read_parquet
from respo.provenance import sources
from respo.provenance.shapes import mapping
from respo.reporting import selection
from respo.statistics import pass_at_k

Count = Annotated[int, Field(ge=0)]
BRANCH_COLUMNS = ("rollout_batch", "bin", "responses", "coefficient_mass", "tokens")


class ProblemResult(Strict):
    """One problem of a cell: c of n samples are correct."""

    id: str
    correct: Count
    samples: Positive


class Cell(Strict):
    """`cell.json`: one checkpoint on one benchmark. Keys that are not needed here may be added."""

    model_config = ConfigDict(extra="ignore")

    study: str
    model: str
    method: str
    staleness: int
    seed: int
    update: int
    benchmark: str
    problems: Annotated[list[ProblemResult], Field(min_length=1)]
    pass_at_1: float
    responses: Count
    unparsed: Count
    timed_out: Count
    failed: Count
    truncated: Count
    mean_response_tokens: float
    majority: float | None = None  # code has no vote
    made_from: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len({problem.id for problem in self.problems}) < len(self.problems):
            raise ValueError("problems: an id stands twice")
        if any(problem.correct > problem.samples for problem in self.problems):
            raise ValueError("problems: more correct samples than samples")
        if self.responses != sum(problem.samples for problem in self.problems):
            raise ValueError("responses: is not the sum of the problems' samples")
        if not abs(self.pass_at_1 - np.mean(list(self.accuracy().values()))) < 1e-9:
            raise ValueError("pass_at_1: is not the mean over the problems")
        return self

    def accuracy(self) -> dict[str, float]:
        """Return the share of correct samples of each problem, in [0, 1]."""
        return {problem.id: problem.correct / problem.samples for problem in self.problems}

    def solved(self, k: int) -> dict[str, float]:
        """Return pass@k of each problem; for k = 1 this is `accuracy`."""
        if k == 1:
            return self.accuracy()
        samples = [problem.samples for problem in self.problems]
        estimates = pass_at_k(samples, [problem.correct for problem in self.problems], k).tolist()
        return {problem.id: e for problem, e in zip(self.problems, estimates, strict=True)}


class Results:
    """Reads a folder `results/<study>` and remembers the hash of each file that it read."""

    def __init__(self, folder: Path) -> None:
        """Load the study.

        Raises:
            UserError: the folder has no `study.yaml`, or a bad one.
        """
        self.folder = folder
        file = folder / "study.yaml"
        if not file.is_file():
            raise UserError(
                f"{file}: no such file; --study takes the results folder of a study, which "
                "`snakemake` makes, such as results/tiny"
            )
        self.study = load_resolved_study(file)
        self._hashes: dict[str, str] = {}
        self._cells: dict[Path, Cell] = {}
        self._outputs: dict[Path, dict[str, Any]] = {}
        self._synthetic = False
        self._remember(file)

    @property
    def synthetic(self) -> bool:
        """Whether a file that was read up to now says that its numbers are made up."""
        return self._synthetic

    def cell(self, run: Run, benchmark: str, update: int | None = None) -> Cell | None:
        """Read the cell of a run at an update, the last evaluated one if left out.

        Returns:
            None where the cell is missing.

        Raises:
            UserError: the file is damaged, or holds the result of something else than its path
                says.
        """
        path = self.cell_path(run, benchmark, update)
        if path in self._cells:
            return self._cells[path]
        if not path.is_file():
            return None
        cell = _parse_cell(path)
        expected: dict[str, Any] = {
            "study": self.study.name,
            "model": run.model,
            "method": run.method,
            "staleness": run.staleness,
            "seed": run.seed,
            "update": self.update(run) if update is None else update,
            "benchmark": benchmark,
        }
        for key, value in expected.items():
            found = getattr(cell, key)
            if found != value:
                raise UserError(
                    f"{path}: {key}: is {found!r}, but the path belongs to {value!r}. "
                    "Delete it and make it anew."
                )
        self._remember(path, cell.made_from)
        self._cells[path] = cell
        return cell

    def cell_path(self, run: Run, benchmark: str, update: int | None = None) -> Path:
        """Return the target that makes a cell at an update, the last evaluated one if left out."""
        return run.cell(self.folder, self.update(run) if update is None else update, benchmark)

    def update(self, run: Run) -> int:
        """Return the checkpoint that tables show: the last evaluated one."""
        return self.study.checkpoints(run)[-1]

    def curves(self) -> list[Run]:
        """Return the runs of full length, whose metrics lie beside each other."""
        return selection.full_length(self.study)

    def metrics(self, run: Run, *columns: str) -> dict[str, np.ndarray] | None:
        """Read columns of a run's metrics, one value per update; None where the run is missing.

        Raises:
            UserError: the file is damaged, lacks a column, does not hold every update once, is not
                the one that `train.json` names, or was made from another configuration than the
                run's.
        """
        path = self.metrics_path(run)
        if not path.is_file():
            return None
        table = read_parquet(path)
        for name in ("update", *columns):
            if name not in table.column_names:
                raise UserError(f"{path}: column {name!r} is missing; {_anew(path)}")
        updates = self.study.training(run).updates
        if table["update"].to_pylist() != list(range(1, updates + 1)):
            raise UserError(
                f"{path}: update: does not count from 1 to {updates}. Delete it and make it anew."
            )
        self._check_run(path, table)
        self._remember(path, made_from(table))
        return {name: table[name].to_numpy().astype(float) for name in columns}

    def branches(self, run: Run, sign: str = "pos") -> dict[str, np.ndarray] | None:
        """Read the sums by bin of log W of one sign of the advantage; None where they are missing.

        Returns:
            The columns `BRANCH_COLUMNS` of `branches.parquet`, one value per update and bin.

        Raises:
            UserError: the file is damaged, lacks a column, is not the one that `train.json` names,
                or was made from another configuration than the run's.
        """
        path = self.branches_path(run)
        if not path.is_file():
            return None
        table = read_parquet(path, ["sign", *BRANCH_COLUMNS])
        self._check_run(path, table)
        self._remember(path, made_from(table))
        of_sign = table["sign"].to_numpy(zero_copy_only=False) == sign
        return {name: table[name].to_numpy()[of_sign] for name in BRANCH_COLUMNS}

    def branches_path(self, run: Run) -> Path:
        """Return the target that makes a run's sums by bin of log W."""
        return run.folder(self.folder) / "branches.parquet"

    def responses(self, run: Run, benchmark: str) -> dict[str, np.ndarray] | None:
        """Read the verdict and length of each response of a cell; None where they are missing.

        Returns:
            `correct` (bool), `response_tokens` and `problem` (int64), one value per response; the
            problems are numbered in the order of their names.

        Raises:
            UserError: the file is damaged, lacks a column, has gaps, or is not the one that
                `cell.json` names.
        """
        path = self.responses_path(run, benchmark)
        if not path.is_file():
            return None
        table = read_parquet(path, ["problem_id", "correct", "response_tokens"])
        for name in table.column_names:
            if table[name].null_count:
                raise UserError(f"{path}: {name}: has gaps. Delete it and make it anew.")
        self._remember(path, made_from(table))
        cell = path.with_name("cell.json")
        recorded = mapping(_record(cell).get("made_from")).get("scores_sha256")
        _compare(path, recorded, cell, f"score them anew: snakemake --forcerun {path}")
        return {
            "correct": table["correct"].to_numpy(zero_copy_only=False).astype(bool),
            "response_tokens": table["response_tokens"].to_numpy().astype(np.int64),
            "problem": np.unique(table["problem_id"].to_numpy(), return_inverse=True)[1],
        }

    def responses_path(self, run: Run, benchmark: str) -> Path:
        """Return the target that makes the verdicts on a cell's responses."""
        return self.cell_path(run, benchmark).with_name("scores.parquet")

    def metrics_path(self, run: Run) -> Path:
        """Return the target that makes a run's metrics."""
        return run.folder(self.folder) / "metrics.parquet"

    def digest(self) -> str:
        """Return 12 hex digits over all files that were read: what a table was made from.

        After `synthetic-` where one of them says that its numbers are made up.
        """
        digits = sources.digest(self._hashes)
        return f"synthetic-{digits}" if self._synthetic else digits

    def record(self, products: Sequence[Path], *packages: str) -> Path:
        """Write beside a table, figure or page what it was made from.

        Args:
            products: its files.
            packages: whose versions are told.
        """
        return sources.write_sources(
            self.folder, self.study.name, products, self.digest(), self._hashes, *packages
        )

    def remember(self, path: Path, name: str) -> None:
        """Count a file from elsewhere among those that were read."""
        self._hashes[name] = sources.source_sha256(path)

    def _remember(self, path: Path, provenance: Mapping[str, Any] | None = None) -> None:
        self.remember(path, path.relative_to(self.folder).as_posix())
        self._synthetic |= bool((provenance or {}).get("synthetic"))

    def _check_run(self, path: Path, table: pa.Table) -> None:
        """Refuse a file of a run that is of another configuration or not as it was written."""
        config, train = path.with_name("config.yaml"), path.with_name("train.json")
        if made_from(table).get("config_sha256") != sha256_of(config):
            raise UserError(
                f"{path}: was not made from the configuration that {config} holds now; "
                f"{_anew(path)}"
            )
        if train not in self._outputs:
            self._outputs[train] = mapping(_record(train).get("outputs"))
        _compare(path, self._outputs[train].get(path.name), train, _anew(path))


def _record(path: Path) -> dict[str, Any]:
    """Read a record, empty where there is none."""
    return mapping(read_json(path)) if path.is_file() else {}


def _compare(path: Path, recorded: object, holder: Path, remedy: str) -> None:
    """Refuse a file whose hash is not the one that a record holds, if it holds one.

    A changed bit may stand in a column that nobody reads.
    """
    if recorded not in (None, sha256_of(path)):
        raise UserError(
            f"{path}: is not the file that {holder} has the hash of: it was changed or damaged; "
            f"{remedy}"
        )


def _anew(path: Path) -> str:
    """Return the remedy for a file of a run folder."""
    return f"train the run anew: snakemake --forcerun {path.with_name('train.json')}"


def _parse_cell(path: Path) -> Cell:
    try:
        return Cell.model_validate(read_json(path))
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        where = f"{path}: {key}" if key else f"{path}"
        raise UserError(f"{where}: {message}. Delete it and make it anew.") from None
