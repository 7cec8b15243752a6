"""pass@1 of every model, N and method on every benchmark. ReSPO, Table 1.

Departures from the paper: several seeds are pooled, missing cells and unread answers are told, and
the Markdown table lists which differences between methods the problems can resolve.
"""

import csv
import io
from collections.abc import Callable
from enum import Enum

from respo.config.study import BASELINE
from respo.reporting.results import Results
from respo.reporting.rows import MACRO, Contrast, Estimate, Row, blocks, contrasts, pool
from respo.reporting.text import (
    html,
    html_page,
    html_table,
    latex,
    latex_table,
    markdown_table,
    plain_latex,
)

MISSING = "--"
MISSING_NAMED = 6
CONTRASTS = (
    "In percentage points, with 95 % percentile intervals from the same replicates (paired by "
    "problem; not corrected for the number of comparisons). Resolved: the interval excludes zero, "
    "so other problems would hardly change the sign, and the difference has this sign at every "
    "training seed, of which there are two or more. Where seeds disagree or there is one, more of "
    "them must decide."
)
CONTRASTS_HEADER = ["Model", "N", "Difference", "Points", "95 % interval", "By seed", "Verdict"]
COUNTS = ("responses", "unparsed", "timed_out", "failed", "truncated")


class Rank(Enum):
    """Place of a value among those of its model, N and column."""

    BEST = 1
    SECOND = 2
    OTHER = 3


def render(results: Results) -> dict[str, str]:
    """Return the table as `csv`, `md`, `html` and `tex`.

    Raises:
        UserError: a damaged or misplaced cell.
    """
    rows = pool(results)
    table_notes = notes(results, rows)
    return {
        "csv": _csv(results, rows),
        "md": _markdown(results, rows, table_notes),
        "html": _html(results, rows, table_notes),
        "tex": _latex(results, rows, table_notes),
    }


def percent(value: float) -> str:
    """Print a share in percent with one decimal."""
    return f"{100 * value:.1f}"


def ranks(block: list[Row], column: str) -> list[Rank]:
    """Rank a column of one model and N as printed; equal values share a rank.

    Nothing is ranked in the on-policy block, where the methods are one, or where a value is alone,
    such as that of a model without training.
    """
    printed = {
        float(percent(row.estimates[column].value)) for row in block if column in row.estimates
    }
    alone = sum(column in row.estimates for row in block) < 2
    order = [] if alone or block[0].staleness == 1 else sorted(printed, reverse=True)

    def rank(row: Row) -> Rank:
        if not order or column not in row.estimates:
            return Rank.OTHER
        place = order.index(float(percent(row.estimates[column].value)))
        return (Rank.BEST, Rank.SECOND)[place] if place < 2 else Rank.OTHER

    return [rank(row) for row in block]


def method_label(results: Results, row: Row) -> str:
    """Name a row's method; with one update per rollout batch it is the on-policy reference."""
    if row.method == BASELINE:
        return "as it comes"
    label = results.study.methods[row.method].label
    return f"on-policy ({label})" if row.staleness == 1 else label


def staleness_label(row: Row) -> str:
    """Print a row's N; models without training have none."""
    return "" if row.method == BASELINE else str(row.staleness)


def notes(results: Results, rows: list[Row]) -> list[str]:
    """Write what a reader must know, one sentence or two each; code in backticks."""
    study = results.study
    evaluation = study.study.evaluation
    sizes = {
        benchmark: len(cell.problems) for row in rows for (_, benchmark), cell in row.cells.items()
    }
    problems = "; ".join(
        f"{b.label}: {sizes.get(name, b.rows)} x {study.samples(name)} ({b.verifier})"
        for name, b in study.benchmarks.items()
    )
    samplings: dict[str, list[str]] = {}
    for name, b in study.benchmarks.items():
        # Models differ in the last of the three alone.
        found = sorted({study.sampling(name, row.model) for row in rows})
        how = (
            f"temperature {found[0].temperature:g}, top-p {found[0].top_p:g}, at most "
            f"{' or '.join(str(values.max_response_tokens) for values in found)} new tokens"
        )
        samplings.setdefault(how, []).append(b.label)
    sampling = "; ".join(
        how if len(samplings) == 1 else f"{', '.join(labels)}: {how}"
        for how, labels in samplings.items()
    )
    totals = {count: sum(row.total(count) for row in rows) for count in COUNTS}
    several = any(len(row.runs) > 1 for row in rows)
    text = [
        f"pass@1 in percent of the checkpoint at update {max(evaluation.updates)}. "
        f"Problems x samples per problem and seed (verifier): {problems}.",
        f"Sampling: {sampling}.",
        "± is one standard error from a cluster bootstrap over problems (10,000 replicates, seed "
        "0, the same draws for all rows); the macro average weighs the benchmarks equally and "
        "takes its error from the same replicates. It says how the result would change with other "
        "problems, not with another training run; 0.0 where all problems agree is a limit of the "
        "bootstrap, not certainty.",
    ]
    if study.study.baselines:
        text.append("Rows without N are models as they come, not trained here.")
    if several:
        text.append(
            "Values are means over seeds; a problem's cluster holds the samples of all seeds. "
            "Seed sd: population standard deviation (ddof 0) of the macro average across seeds."
        )
    text += [
        "Best value of a model and N in bold, second underlined, ranked as printed; ties share. "
        "On-policy rows (N = 1) are the reference and not ranked.",
        f"Of {totals['responses']} responses {totals['unparsed']} had no readable answer, on "
        f"{totals['timed_out']} the verifier ran out of time and on {totals['failed']} it failed "
        "(all count as wrong); "
        f"{totals['truncated']} were cut at the length limit.",
    ]
    return text + _missing(results, rows)


def _missing(results: Results, rows: list[Row]) -> list[str]:
    pairs = [(run, b) for row in rows for run in row.runs for b in results.study.benchmarks]
    there = {pair for row in rows for pair in row.cells}
    missing = [results.cell_path(run, b) for run, b in pairs if (run, b) not in there]
    if not missing:
        return []
    named = ", ".join(f"`{path}`" for path in missing[:MISSING_NAMED])
    more = f" and {len(missing) - MISSING_NAMED} more" if len(missing) > MISSING_NAMED else ""
    table = results.folder / "tables/respo/table1.md"
    return [
        f"Incomplete: {len(missing)} of {len(pairs)} cells are missing ({MISSING}); "
        "seeds are counted where all benchmarks are there, of those planned. "
        f"`snakemake {table}` makes them all; one by one they are the targets {named}{more}."
    ]


def _columns(results: Results) -> dict[str, str]:
    labels = {name: benchmark.label for name, benchmark in results.study.benchmarks.items()}
    return {**labels, MACRO: "Macro average"}


def _lines(
    results: Results, rows: list[Row], entry: Callable[[Estimate, Rank], str]
) -> list[list[list[str]]]:
    """Format the table's body: per block, per row, the text of each column."""
    return [
        [
            [
                results.study.models[row.model].label,
                staleness_label(row),
                method_label(results, row),
                *(
                    entry(row.estimates[column], rank) if column in row.estimates else MISSING
                    for column, rank in places.items()
                ),
                "" if row.seed_sd is None else percent(row.seed_sd),
                _seeds(row),
            ]
            for row, places in zip(block, _places(results, block), strict=True)
        ]
        for _, block in blocks(rows)
    ]


def _places(results: Results, block: list[Row]) -> list[dict[str, Rank]]:
    columns = _columns(results)
    by_column = [ranks(block, column) for column in columns]
    return [dict(zip(columns, row, strict=True)) for row in zip(*by_column, strict=True)]


def _seeds(row: Row) -> str:
    named = len(row.runs)
    return str(named) if row.complete_seeds == named else f"{row.complete_seeds} of {named}"


def _header(results: Results) -> list[str]:
    return ["Model", "N", "Method", *_columns(results).values(), "Seed sd", "Seeds"]


def _markdown(results: Results, rows: list[Row], table_notes: list[str]) -> str:
    marks = {Rank.BEST: "**{}**", Rank.SECOND: "<u>{}</u>", Rank.OTHER: "{}"}

    def entry(estimate: Estimate, rank: Rank) -> str:
        return f"{marks[rank].format(percent(estimate.value))} ± {percent(estimate.error)}"

    body = [line for block in _lines(results, rows, entry) for line in block]
    parts = [
        f"<!-- made from results {results.digest()} -->",
        f"# {results.study.study.title}: pass@1",
        markdown_table(_header(results), body, text_columns=3),
        "\n".join(f"- {note}" for note in table_notes),
    ]
    compared = list(contrasts(rows))
    if compared:
        parts += [
            "## Differences of the macro average",
            CONTRASTS,
            markdown_table(
                CONTRASTS_HEADER,
                [_contrast(results, contrast) for contrast in compared],
                text_columns=3,
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _html(results: Results, rows: list[Row], table_notes: list[str]) -> str:
    marks = {Rank.BEST: "<b>{}</b>", Rank.SECOND: "<u>{}</u>", Rank.OTHER: "{}"}

    def entry(estimate: Estimate, rank: Rank) -> str:
        return f"{marks[rank].format(percent(estimate.value))} ± {percent(estimate.error)}"

    # Everything but the entries is text of the study and may hold special characters.
    body = [
        [*map(html, line[:3]), *line[3:]]
        for block in _lines(results, rows, entry)
        for line in block
    ]
    parts = [
        html_table([html(head) for head in _header(results)], body, text_columns=3),
        "<ul>\n" + "\n".join(f"<li>{html(note)}</li>" for note in table_notes) + "\n</ul>",
    ]
    compared = [[html(cell) for cell in _contrast(results, c)] for c in contrasts(rows)]
    if compared:
        parts += [
            "<h2>Differences of the macro average</h2>",
            f"<p>{html(CONTRASTS)}</p>",
            html_table(CONTRASTS_HEADER, compared, text_columns=3),
        ]
    parts.append(f"<p>Made from results <code>{results.digest()}</code>.</p>")
    return html_page(f"{results.study.study.title}: pass@1", parts)


def _contrast(results: Results, contrast: Contrast) -> list[str]:
    first, second = contrast.first, contrast.second
    points = [f"{100 * x:+.1f}" for x in (contrast.difference, contrast.low, contrast.high)]
    return [
        results.study.models[first.model].label,
        str(first.staleness),
        f"{method_label(results, second)} - {method_label(results, first)}",
        points[0],
        f"[{points[1]}, {points[2]}]",
        ", ".join(f"{100 * difference:+.1f}" for difference in contrast.by_seed),
        contrast.verdict,
    ]


def _latex(results: Results, rows: list[Row], table_notes: list[str]) -> str:
    marks = {Rank.BEST: r"\mathbf{%s}", Rank.SECOND: r"\underline{%s}", Rank.OTHER: "%s"}

    def entry(estimate: Estimate, rank: Rank) -> str:
        return f"${marks[rank] % percent(estimate.value)}_{{\\pm {percent(estimate.error)}}}$"

    # Everything but the entries is text of the study and may hold special characters.
    body = [
        [[*map(plain_latex, line[:3]), *line[3:]] for line in block]
        for block in _lines(results, rows, entry)
    ]
    table = latex_table([plain_latex(head) for head in _header(results)], body, text_columns=3)
    small = "\n\n".join(latex(note) for note in table_notes)
    return (
        f"% made from results {results.digest()}\n"
        "% needs \\usepackage{booktabs}\n"
        f"{table}\n\n\\par\\footnotesize\n{small}\n"
    )


def _csv(results: Results, rows: list[Row]) -> str:
    columns = list(_columns(results))
    header = ["study", "model", "method", "N", "seeds", "complete_seeds"]
    for column in columns:
        header += [f"{column}_pass_at_1", f"{column}_standard_error"]
    header += ["macro_seed_sd", *COUNTS, "mean_response_tokens", "made_from"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        # None is written as an empty field: missing, never zero.
        line: list[object] = [results.study.name, row.model, row.method, row.staleness]
        line += [len(row.runs), row.complete_seeds]
        for column in columns:
            line += row.estimates.get(column, (None, None))
        counts = [row.total(count) if row.cells else None for count in COUNTS]
        line += [row.seed_sd, *counts, row.mean_response_tokens(), results.digest()]
        writer.writerow(line)
    return text.getvalue()
