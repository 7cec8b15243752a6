"""`python -m respo.reporting.table ID --study results/STUDY`: make a table.

Writes `tables/ID.csv`, `.md`, `.html` and `.tex` in the study's folder, from what lies there: a
partial grid gives a partial table whose notes say what is missing. Some tables have further files,
such as `ID.contrasts.csv` and `.tex`. With `--reference config/reference` those that a paper prints
are compared with it, also in `ID.reference.csv`. `ID.sources.json` says what all were made from.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from respo.cli import UserError, command
from respo.config.study import ResolvedStudy
from respo.files import write_text
from respo.reporting import notes, reference, registry, tables
from respo.reporting.layout import Table, render
from respo.reporting.results import Results

SUFFIXES = ("csv", "md", "html", "tex")


@command
def main() -> None:
    """Parse the command line and write the table in every format."""
    parser = argparse.ArgumentParser(prog="python -m respo.reporting.table", description=__doc__)
    parser.add_argument("id", choices=registry.ids(tables), help="the table")
    parser.add_argument("--study", type=Path, required=True, help="folder results/STUDY")
    parser.add_argument("--reference", type=Path, help="config/reference: the papers' numbers")
    options = parser.parse_args()
    results = Results(options.study)
    made = []
    for suffix, text in make(options.id, results, options.reference).items():
        path = results.folder / "tables" / f"{options.id}.{suffix}"
        write_text(path, text)
        made.append(path)
        print(path)
    results.record(made, "numpy")


def make(id_: str, results: Results, papers: Path | None = None) -> dict[str, str]:
    """Return the files of a table: text by suffix.

    Args:
        id_: of the table.
        results: the study's folder.
        papers: `config/reference`, for a comparison with the paper.

    Raises:
        UserError: the table cannot be made for this study, or a file is damaged.
    """
    study, module = results.study, registry.module(tables, id_)
    if reason := module.applies(study):
        raise UserError(f"{results.folder / 'study.yaml'}: tables: {id_} {reason}")
    table: Table = module.make(results)
    if papers and module.PRINTED:
        table = _compared(table, id_, module, results, papers)
    if results.synthetic:
        title = f"{table.title} (synthetic)"
        # Sections have files of their own.
        sections = [s._replace(text=f"{notes.SYNTHETIC} {s.text}") for s in table.sections]
        table = replace(
            table, title=title, notes=[notes.SYNTHETIC, *table.notes], sections=sections
        )
    return render(table, study.name, study.study.title, results.digest())


def _compared(table: Table, id_: str, module: ModuleType, results: Results, papers: Path) -> Table:
    paper = id_.partition("/")[0]
    printed = printed_numbers(id_, module, results.study, papers)
    results.remember(papers / f"{paper}.csv", f"reference/{paper}.csv")
    if not printed:
        note = "No row of this table is in the paper that it is named after: nothing to compare."
        return replace(table, notes=[*table.notes, note])
    assert table.ours is not None
    section = reference.section(printed, results.study, table.ours)
    return replace(table, sections=[*table.sections, section])


def printed_numbers(
    id_: str, module: ModuleType, study: ResolvedStudy, papers: Path
) -> list[reference.Printed]:
    """Return what the paper prints of a table's rows."""
    numbers = reference.read(papers, id_.partition("/")[0])
    return reference.of_study(numbers, study, module.PRINTED)


def suffixes(id_: str, study: ResolvedStudy, papers: Path | None = None) -> list[str]:
    """Return the suffixes of the files that `make` gives, without making them."""
    module = registry.module(tables, id_)
    compared = papers and module.PRINTED and printed_numbers(id_, module, study, papers)
    further = [*module.SECTIONS, *(["reference"] if compared else [])]
    return [*SUFFIXES, *(f"{name}.{kind}" for name in further for kind in ("csv", "tex"))]


if __name__ == "__main__":
    main()
