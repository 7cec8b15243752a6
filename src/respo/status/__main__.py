"""`python -m respo.status --study NAME`: how far a study is, also while it runs.

Shows the grid, what runs with its update and the time that is left, what has failed with the last
words of its log, and how many cells, tables and figures are there. It reads files and nothing else:
it starts nothing, writes nothing, and works wherever the results can be seen, such as on the login
node of a cluster. `results/NAME` is taken as well.
"""

import argparse
import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from respo.cli import UserError, command
from respo.config import ResolvedStudy, load_resolved_study, load_settings, load_study
from respo.config.schema import Settings
from respo.status.overview import look
from respo.status.text import lines


@command
def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.status",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--study", help="its name or its results folder (default: of config.yaml)")
    parser.add_argument("--results", help="folder of all results (default: of config.yaml)")
    parser.add_argument("--config", type=Path, default=Path("config"), help="default: config")
    parser.add_argument("--json", action="store_true", help="print it for a program")
    options = parser.parse_args()
    status = look(*find(options.study, options.results, options.config))
    if options.json:
        print(json.dumps(asdict(status), default=str))
        return
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    print("\n".join(lines(status, width, colour)))


def find(study: str | None, results: str | None, config: Path) -> tuple[ResolvedStudy, Path]:
    """Return a study and its results folder.

    The study is what its results folder says; one that was never started, or whose folder is of
    another version of the project, is what `config` says.

    Raises:
        UserError: there is no such study.
    """
    folder = Path(study) if study and _is_folder(study) else None
    if folder is None:
        settings = _settings(config, study, results)
        folder = Path(settings.results) / settings.study
    name = folder.resolve().name
    file, known = folder / "study.yaml", config / "studies" / f"{name}.yaml"
    if file.is_file():
        try:
            return load_resolved_study(file), folder
        except UserError as error:
            if not known.is_file():
                raise UserError(f"{error}\n{file} is written anew when the study starts") from None
    settings = _settings(config, name, results)
    own, overrides = settings.own_methods_folder, settings.verl_overrides
    return load_study(config, name, own, overrides), folder


def _is_folder(study: str) -> bool:
    return os.sep in study or (Path(study) / "study.yaml").is_file()


def _settings(config: Path, study: str | None, results: str | None) -> Settings:
    if not (config / "config.yaml").is_file():
        raise UserError(
            f"{config / 'config.yaml'}: no such file; start this in the project's folder, or name "
            "a results folder that was started: --study results/tiny"
        )
    given = {"study": study, "results": results}
    overrides = {key: value for key, value in given.items() if value is not None}
    return load_settings(config / "config.yaml", overrides)


if __name__ == "__main__":
    main()
