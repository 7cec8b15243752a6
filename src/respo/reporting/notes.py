"""What stands below the tables of cells: what the values are, and what is missing."""

from collections.abc import Sequence
from pathlib import Path

from respo.config.schema import Method
from respo.config.study import ResolvedStudy
from respo.reporting import labels, selection
from respo.reporting.layout import MISSING, PARTIAL
from respo.reporting.results import Results
from respo.reporting.rows import MACRO, Row

COUNTS = ("responses", "unparsed", "timed_out", "failed", "truncated")
NAMED = 6
SYNTHETIC = (
    "Synthetic: the numbers are made up, to try and time the reporting. They say nothing about any "
    "method."
)
BOOTSTRAP = (
    "± is one standard error from a cluster bootstrap over problems (10,000 replicates, seed "
    "0, the same draws for all rows); the macro average weighs the benchmarks equally and "
    "takes its error from the same replicates. It says how the result would change with other "
    "problems, not with another training run; 0.0 where all problems agree is a limit of the "
    "bootstrap, not certainty."
)
AVG_AND_PASS = (
    "avg@K, the mean share of correct responses of K, and pass@K, the share of problems that K "
    "tries solve (unbiased estimate; with K of K responses: any is correct), both"
)


def of_cells(
    results: Results, kinds: Sequence[str], rows: Sequence[Row], benchmarks: Sequence[str]
) -> list[str]:
    """Write what a reader must know, one sentence or two each; code in backticks."""
    study = results.study
    what = {"pass@1": "pass@1", "accuracy": "Accuracy, the mean share of correct responses,"}
    totals = {count: sum(row.total(count) for row in rows) for count in COUNTS}
    updates = max(study.study.evaluation.updates)
    trained = any(not row.runs[0].is_baseline for row in rows)
    shown = [
        f"{what.get(kinds[0], AVG_AND_PASS if len(kinds) > 1 else 'avg@K, as pass@1,')} in percent"
        f"{f' of the checkpoint at update {updates:,}' if trained else ''}. Problems × samples per "
        f"problem and seed (verifier): {_problems(study, rows, benchmarks)}.",
        f"Sampling: {_sampling(study, rows, benchmarks)}.",
        BOOTSTRAP,
    ]
    if any(row.runs[0].is_baseline for row in rows):
        shown.append("Rows without N are models as they come, not trained here.")
    if any(len(row.runs) > 1 for row in rows):
        shown.append(
            "Values are means over seeds; a problem's cluster holds the samples of all seeds."
        )
    return [
        *shown,
        f"Responses: {totals['responses']:,}. Of these count as wrong: without a readable answer "
        f"{totals['unparsed']:,}; out of time when checked {totals['timed_out']:,}; failed then, "
        f"by a crash or too much memory or output, {totals['failed']:,}. Cut at the length limit: "
        f"{totals['truncated']:,}.",
    ]


def spread(rows: Sequence[Row]) -> list[str]:
    """Write what the column of the spread over seeds is, where there are several."""
    if all(len(row.runs) < 2 for row in rows):
        return []
    return ["Seed sd: population standard deviation (ddof 0) of the macro average across seeds."]


def ranking(blocks: Sequence[Sequence[Row]], of: str) -> list[str]:
    """Write what is marked in blocks of rows, each of one model, N and whatever else; if any is."""
    ranked = [block for block in blocks if block[0].staleness != 1]
    most = max(map(len, ranked), default=0)
    if most < 2:
        return []
    second = ", second of three or more underlined" if most > 2 else ""
    note = f"Best value of {of} in bold{second}, ranked as printed; ties share."
    if len(ranked) < len(blocks):
        note += " On-policy rows (N = 1) are the reference and not ranked."
    return [note]


def partial(study: ResolvedStudy, rows: Sequence[Row]) -> list[str]:
    """Write which values are of some of the seeds alone."""
    found = [
        f"{study.models[row.model].label}, {_n(row)}{labels.method(study, row)}: {seeds}"
        for row in rows
        if (seeds := _seeds(study, row))
    ]
    return of_some_seeds(found, ", not ranked")


def of_some_seeds(rows: Sequence[str], more: str = "") -> list[str]:
    """Write which rows are of some of the seeds alone, if any, and what `more` follows of it."""
    if not rows:
        return []
    others = f"; and {len(rows) - NAMED} more rows" if len(rows) > NAMED else ""
    return [f"{PARTIAL} of some of the seeds alone{more}: {'; '.join(rows[:NAMED])}{others}."]


def _n(row: Row) -> str:
    return f"N = {row.staleness}, " if labels.staleness(row) else ""


def _seeds(study: ResolvedStudy, row: Row) -> str:
    """Return how many seeds there are for the columns that lack some."""
    columns: dict[int, list[str]] = {}
    for name in row.estimates:
        if row.is_partial(name):
            label = "macro average" if name == MACRO else study.benchmarks[name].label
            columns.setdefault(row.seeds(name), []).append(label)
    whole = [len(names) for names in columns.values()] == [len(row.estimates)]
    return ", ".join(
        f"{k} of {len(row.runs)} seeds" + ("" if whole else f" ({', '.join(names)})")
        for k, names in columns.items()
    )


def parameters(study: ResolvedStudy, rows: Sequence[Row]) -> list[str]:
    """Write what tells methods of one objective apart, which their names do not always say."""
    by_objective: dict[str, list[Method]] = {}
    for name in dict.fromkeys(row.method for row in rows if not row.runs[0].is_baseline):
        method = study.methods[name]
        by_objective.setdefault(method.objective, []).append(method)
    parts = []
    for methods in by_objective.values():
        names = selection.differing(methods)
        for method in methods:
            own = {k: v for k, v in selection.settings(method).items() if k in names}
            parts += [f"{method.label}: {labels.settings(own)}"] if own else []
    return [f"What tells methods of one objective apart: {'; '.join(parts)}."] if parts else []


def _problems(study: ResolvedStudy, rows: Sequence[Row], benchmarks: Sequence[str]) -> str:
    parts = []
    for name in benchmarks:
        b = study.benchmarks[name]
        size = next((n for row in rows if (n := row.problems(name))), b.rows)
        parts.append(f"{b.label}: {size:,} × {study.samples(name)} ({labels.verifier(b.verifier)})")
    return "; ".join(parts)


def _sampling(study: ResolvedStudy, rows: Sequence[Row], benchmarks: Sequence[str]) -> str:
    samplings: dict[str, list[str]] = {}
    for name in benchmarks:
        # Models differ in the last of the three alone.
        found = sorted({study.sampling(name, row.model) for row in rows})
        how = (
            f"temperature {found[0].temperature:g}, top-p {found[0].top_p:g}, at most "
            f"{' or '.join(f'{values.max_response_tokens:,}' for values in found)} new tokens"
        )
        samplings.setdefault(how, []).append(study.benchmarks[name].label)
    return "; ".join(
        how if len(samplings) == 1 else f"{', '.join(heads)}: {how}"
        for how, heads in samplings.items()
    )


def missing(results: Results, id_: str, inputs: Sequence[Path], kind: str = "cells") -> list[str]:
    """Write which files of a table are missing, and the targets that make them."""
    paths = [results.folder / path for path in inputs]
    absent = [path for path in paths if not path.is_file()]
    if not absent:
        return []
    named = ", ".join(f"`{path}`" for path in absent[:NAMED])
    more = f" and {len(absent) - NAMED:,} more" if len(absent) > NAMED else ""
    seeds = "seeds are counted where all benchmarks are there, of those planned. "
    return [
        f"Incomplete: {len(absent):,} of {len(paths):,} {kind} are missing ({MISSING}); "
        f"{seeds if kind == 'cells' else ''}"
        f"`snakemake {results.folder}/tables/{id_}.md` makes them all; one by one they are the "
        f"targets {named}{more}."
    ]
