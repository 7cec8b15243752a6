"""`python -m respo.reporting.figure ID --study results/STUDY`: draw a figure.

Writes `figures/ID.pdf` and `.png` in the study's folder, from what lies there, and beside them
`ID.sources.json`, which says what they were made from. The same results give the same bytes.
Figures of objectives need no results: `--methods grpo,aspo --out FILE.png` draws any methods of
config/methods, and with `--own-methods FOLDER` yours.
"""

import argparse
import os
from pathlib import Path

from respo.cli import UserError, command
from respo.config.schema import Method
from respo.reporting import choices, figures, notes, registry
from respo.reporting.methods import digest, read_methods
from respo.reporting.results import Results


@command
def main() -> None:
    """Parse the command line and write the figure."""
    parser = argparse.ArgumentParser(prog="python -m respo.reporting.figure", description=__doc__)
    parser.add_argument("id", choices=registry.ids(figures), help="the figure")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--study", type=Path, help="folder results/STUDY")
    source.add_argument("--methods", help="names of methods, separated by commas")
    parser.add_argument(
        "--own-methods",
        type=Path,
        default=os.environ.get("RESPO_METHODS"),
        help="with --methods: a folder of your own (default: RESPO_METHODS)",
    )
    parser.add_argument("--out", type=Path, help="with --methods: the file, .png, .pdf or .svg")
    options = parser.parse_args()
    if (options.methods is None) != (options.out is None):
        parser.error("--methods and --out belong together")
    if options.methods is None:
        _draw_study(options.id, options.study)
    else:
        methods = read_methods(options.methods, options.own_methods)
        _draw_methods(options.id, methods, options.out)


def _draw_study(id_: str, folder: Path) -> None:
    results = Results(folder)
    if reason := choices.refusal(id_, results.study):
        raise UserError(f"{results.folder / 'study.yaml'}: figures: {id_} {reason}")
    # Imported here: --help and a wrong folder should not wait for matplotlib.
    from respo.reporting import style

    with style.applied():
        figure = registry.module(figures, id_).draw(results)
        files = choices.inputs(id_, results.study, results.folder)
        if not all(file.is_file() for file in files):
            target = results.folder / "figures" / f"{id_}.png"
            style.note(figure, f"incomplete: `snakemake {target}` makes all that is missing")
        if results.synthetic:
            style.mark_synthetic(figure, notes.SYNTHETIC)
        made = style.save(figure, results.folder / "figures" / id_, results.digest())
        results.record(made, "numpy", "matplotlib")
        print(*made, sep="\n")


def _draw_methods(id_: str, methods: dict[str, Method], out: Path) -> None:
    from respo.reporting import style

    if out.suffix[1:] not in style.FORMATS:
        raise UserError(f"--out: {out} must end in one of .{', .'.join(style.FORMATS)}")
    module = registry.module(figures, id_)
    if not hasattr(module, "draw_methods"):
        raise UserError(f"--methods: {id_} is drawn from results; give --study instead")
    with style.applied():
        source = f"{id_} drawn from methods {digest(methods)}: {','.join(methods)}"
        style.write(module.draw_methods(methods), out, source)
    print(out)


if __name__ == "__main__":
    main()
