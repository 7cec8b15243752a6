"""Tables of cells: a row per model, N and method, columns of avg@K and pass@K by benchmark.

A table of this kind says which runs and which benchmarks it has; the rest is the same for all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from respo.config import Run
from respo.config.study import ResolvedStudy
from respo.reporting import labels, notes, registry, tables
from respo.reporting.layout import (
    Block,
    Cell,
    Column,
    Number,
    Ours,
    Table,
    percent,
    text,
)
from respo.reporting.results import Results
from respo.reporting.rows import MACRO, Row, pool

LEAD = [
    text("model", None),
    text("method", None),
    text("N", None),
    Column("seeds", None, digits=0),
    Column("complete_seeds", None, digits=0),
    text(None, "Model"),
    text(None, "N"),
    text(None, "Method"),
]
TAIL = [
    percent("macro_seed_sd", "Seed sd"),
    text(None, "Seeds"),
    *(Column(count, None, digits=0) for count in notes.COUNTS),
    Column("mean_response_tokens", None),
]
# Head of a column after the benchmark's label, and its name in the CSV file, by what it shows.
KINDS = {
    "pass@1": ("", "pass_at_1"),
    "accuracy": ("", "accuracy"),
    "avg": (" avg@{k}", "avg_at_{k}"),
    "pass": (" pass@{k}", "pass_at_{k}"),
}


def by_model_and_n(row: Row) -> object:
    """Return what rows share that are compared with each other."""
    return row.model, row.staleness


@dataclass(frozen=True)
class Part:
    """What some columns of a table show: one kind of estimate of some benchmarks.

    samples: K by benchmark, which names the columns and is the number of tries of `pass`.
    """

    kind: str
    samples: Mapping[str, int]

    @property
    def tries(self) -> Mapping[str, int]:
        """k of pass@k by benchmark; 1 for those that show a share of responses."""
        return self.samples if self.kind == "pass" else {}

    def column(self, study: ResolvedStudy, name: str) -> Column:
        """Make the column of a benchmark or of the macro average."""
        label = "Macro average" if name == MACRO else study.benchmarks[name].label
        same = set(self.samples.values())
        k = self.samples.get(name) or (same.pop() if len(same) == 1 else "K")
        head, key = (part.format(k=k) for part in KINDS[self.kind])
        error = f"{name}_{key}_standard_error" if head else f"{name}_standard_error"
        return percent(f"{name}_{key}", f"{label}{head}", error, ranked=True)


@dataclass(frozen=True)
class Grid:
    """A table of cells.

    kinds: of `KINDS`. runs, benchmarks: those that it shows of a study. otherwise: why it cannot be
    made where there is none of either.
    """

    id: str
    title: str
    kinds: tuple[str, ...]
    runs: Callable[[ResolvedStudy], Sequence[Run]]
    benchmarks: Callable[[ResolvedStudy], Sequence[str]]
    otherwise: str

    def applies(self, study: ResolvedStudy) -> str | None:
        """Return why the table cannot be made for a study; None if it can."""
        return None if self.runs(study) and self.benchmarks(study) else self.otherwise

    def inputs(self, study: ResolvedStudy) -> list[Path]:
        """Return the files that it is made from, below the study's folder."""
        return cells(study, self.runs(study), self.benchmarks(study))

    def make(self, results: Results) -> Table:
        """Read the cells and lay out the table.

        Raises:
            UserError: a damaged or misplaced cell.
        """
        table = self.lay_out(results, self.pools(results))
        return replace(table, notes=[*table.notes, *self._twins(results.study)])

    def _twins(self, study: ResolvedStudy) -> list[str]:
        """Write which other tables of a study have the same rows and columns as this one."""
        modules = {id_: registry.module(tables, id_) for id_ in study.study.tables}
        # Those that add something have a `make` of their own.
        grids = [m.GRID for m in modules.values() if hasattr(m, "GRID") and m.make == m.GRID.make]
        names = [grid.id for grid in grids if grid.id != self.id and grid.shows(study, self)]
        return [
            f"In this study `{name}` shows the same: the two differ where a study has benchmarks "
            "of several kinds, or models beside its own."
            for name in names
        ]

    def shows(self, study: ResolvedStudy, other: "Grid") -> bool:
        """Return whether the rows and columns for a study are those of another table."""
        return (self.kinds, self.runs(study), self.benchmarks(study)) == (
            other.kinds,
            other.runs(study),
            other.benchmarks(study),
        )

    def pools(self, results: Results) -> dict[str, list[Row]]:
        """Read the rows, once for each kind."""
        runs, names = self.runs(results.study), self.benchmarks(results.study)
        parts = {kind: Part(kind, samples(results.study, names)) for kind in self.kinds}
        return {kind: pool(results, names, part.tries, runs) for kind, part in parts.items()}

    def lay_out(
        self,
        results: Results,
        pools: dict[str, list[Row]],
        extra: Sequence[tuple[Column, Callable[[Row], Cell]]] = (),
        block: Callable[[Row], object] = by_model_and_n,
        compared: str = "a model and N",
    ) -> Table:
        """Make the table of rows that were read.

        `extra` and `block` as for `lay_out`; `compared` is what a block is of.
        """
        study = results.study
        names = list(self.benchmarks(study))
        parts = [(Part(kind, samples(study, names)), rows) for kind, rows in pools.items()]
        return lay_out(
            results,
            self.title,
            [(part, rows, [*names, MACRO]) for part, rows in parts],
            [
                *self.about(results, pools, block, compared),
                *notes.spread(pools[self.kinds[0]]),
                *notes.missing(results, self.id, self.inputs(study)),
            ],
            extra,
            block,
        )

    def about(
        self,
        results: Results,
        pools: dict[str, list[Row]],
        block: Callable[[Row], object] = by_model_and_n,
        compared: str = "a model and N",
    ) -> list[str]:
        """Write what a reader must know of the values; `block` and `compared` as for `lay_out`."""
        rows, names = pools[self.kinds[0]], self.benchmarks(results.study)
        return [
            *notes.of_cells(results, self.kinds, rows, names),
            *notes.partial(results.study, rows),
            *notes.ranking([list(group) for _, group in groupby(rows, key=block)], compared),
            *notes.parameters(results.study, rows),
        ]


def lay_out(
    results: Results,
    title: str,
    parts: Sequence[tuple[Part, Sequence[Row], Sequence[str]]],
    about: Sequence[str],
    extra: Sequence[tuple[Column, Callable[[Row], Cell]]] = (),
    block: Callable[[Row], object] = by_model_and_n,
) -> Table:
    """Lay out rows: names, estimates, spread over seeds, counts.

    Args:
        results: the study's folder.
        title: of the table.
        parts: for each kind of estimate the rows, the same in all, and the names of its columns.
        about: notes.
        extra: further columns after the names of the rows.
        block: what the rows that are compared with each other share.
    """
    study = results.study
    first_rows = parts[0][1]
    order = list(dict.fromkeys(name for *_, names in parts for name in names))
    estimates = [
        (part.column(study, name), [number(row, name) for row in rows])
        for name in order
        for part, rows, names in parts
        if name in names
    ]
    lines = [
        [
            *lead(study, row),
            *(show(row) for _, show in extra),
            *(found[i] for _, found in estimates),
            *tail(row),
        ]
        for i, row in enumerate(first_rows)
    ]
    blocks = [
        Block([line for _, line in group], ranked=row.staleness != 1)
        for row, group in _grouped(first_rows, lines, block)
    ]
    columns = [*LEAD, *(c for c, _ in extra), *(c for c, _ in estimates), *TAIL]
    return Table(title, columns, blocks, about, ours=ours([(p, rows) for p, rows, _ in parts]))


def _grouped(
    rows: Sequence[Row], lines: Sequence[list[Cell]], block: Callable[[Row], object]
) -> list[tuple[Row, list[tuple[Row, list[Cell]]]]]:
    pairs = zip(rows, lines, strict=True)
    groups = [list(group) for _, group in groupby(pairs, key=lambda pair: block(pair[0]))]
    return [(group[0][0], group) for group in groups]


def samples(study: ResolvedStudy, benchmarks: Sequence[str]) -> dict[str, int]:
    """Return K by benchmark."""
    return {name: study.samples(name) for name in benchmarks}


def cells(study: ResolvedStudy, runs: Sequence[Run], benchmarks: Sequence[str]) -> list[Path]:
    """Return the files with the results of runs at their last evaluated update."""
    return [
        run.cell(Path(), study.checkpoints(run)[-1], benchmark)
        for run in runs
        for benchmark in benchmarks
    ]


def of_verifiers(*verifiers: str) -> Callable[[ResolvedStudy], list[str]]:
    """Return what chooses the benchmarks that one of some verifiers judges."""
    return lambda study: [n for n, b in study.benchmarks.items() if b.verifier in verifiers]


def lead(study: ResolvedStudy, row: Row) -> list[Cell]:
    """Return the names of a row, and the number of its seeds."""
    return [
        row.model,
        row.method,
        str(row.staleness),
        Number(len(row.runs)),
        Number(row.complete_seeds),
        study.models[row.model].label,
        labels.staleness(row),
        labels.method(study, row),
    ]


def number(row: Row, name: str) -> Number | None:
    """Return an estimate of a row, marked where it is not of all seeds."""
    estimate = row.estimates.get(name)
    return estimate and Number(*estimate, partial=row.is_partial(name))


def tail(row: Row) -> list[Cell]:
    """Return the spread of a row over seeds, and the counts behind it."""
    named, tokens = len(row.runs), row.mean_response_tokens()
    done = row.complete_seeds
    return [
        "" if row.seed_sd is None else Number(row.seed_sd),
        str(named) if done == named else f"{done} of {named}",
        *(Number(row.total(count)) if row.cells else "" for count in notes.COUNTS),
        "" if tokens is None else Number(tokens),
    ]


def ours(parts: Sequence[tuple[Part, Sequence[Row]]]) -> Ours:
    """Return what finds the estimate, in percent, that a paper's value is compared with."""

    def find(model: str, method: str, staleness: int, benchmark: str, metric: str) -> Number | None:
        for part, rows in parts:
            if not _shows(part, benchmark, metric):
                continue
            for row in rows:
                if (row.model, row.method, row.staleness) == (model, method, staleness):
                    names = benchmark.split("+")
                    estimate, partial = row.mean_of(names), any(map(row.is_partial, names))
                    return estimate and Number(
                        100 * estimate.value, 100 * estimate.error, partial=partial
                    )
        return None

    return find


def _shows(part: Part, benchmark: str, metric: str) -> bool:
    """Whether a part has the metric; avg@K is the same quantity for any K, pass@K is not."""
    kind, _, k = metric.partition("@")
    if metric == "pass@1" or kind in ("avg", "accuracy"):
        return part.kind != "pass"
    tries = set(part.samples.values()) if benchmark == MACRO else {part.samples.get(benchmark)}
    return part.kind == kind == "pass" and tries == {int(k)}
