"""Look up every version of the locks among known vulnerabilities, and the licences installed here.

`./run audit` asks https://osv.dev, which collects the advisories of PyPI and GitHub, by name and
version; nothing else leaves this machine. What it finds is accepted, with a reason, by a line
`ID reason` in `accepted.txt` beside this file.

Exit code: 0 nothing found, 1 something found, 3 the database cannot be reached, so that nothing
is known.
"""

import argparse
import importlib.metadata
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ENVS = Path(__file__).resolve().parent
DATABASE = "https://api.osv.dev"
AT_A_TIME = 500  # the database takes 1,000
TIMEOUT = 30.0
FOUND, UNREACHABLE = 1, 3
PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)
# What a licence must name. MPL-2.0 asks for changes of its own files alone.
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla Public License|Zlib"
    r"|CC0|BSL|CNRI|Unlicense|Public Domain)\b"
)
COPYLEFT = re.compile(r"\b[AL]?GPL|General Public|EUPL|SSPL|Commons Clause|BUSL", re.IGNORECASE)
# Whose metadata say too little or too much: what their own files say.
LICENCES = {
    "conda-inject": "MIT",
    "docutils": "Public Domain",  # an editor's mode, which is not installed, is under the GPL
    "snakemake-interface-common": "MIT",
    "snakemake-interface-logger-plugins": "MIT",
    "snakemake-interface-report-plugins": "MIT",
    "snakemake-interface-scheduler-plugins": "MIT",
    "snakemake-interface-storage-plugins": "MIT",
}


def locked(folder: Path = ENVS) -> dict[tuple[str, str], list[str]]:
    """Return the locks of a folder that have each version of each package."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(
        [*folder.glob("*.lock"), *folder.glob("*lock.txt"), *folder.glob("*cpu.txt")]
    ):
        for name, version in PIN.findall(path.read_text(encoding="utf-8")):
            # The database knows no local part of a build (2.13.0+cpu).
            key = (re.sub(r"[-_.]+", "-", name).lower(), version.partition("+")[0])
            found.setdefault(key, []).append(path.name)
    return found


def vulnerabilities(
    packages: Iterable[tuple[str, str]], database: str
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield a package and version, and the name of a vulnerability that it has.

    Raises:
        OSError: the database cannot be reached, or answers with an error.
        ValueError: it answers with something else.
    """
    waiting = [
        (package, {"package": {"name": package[0], "ecosystem": "PyPI"}, "version": package[1]})
        for package in packages
    ]
    while waiting:
        asked, waiting = waiting[:AT_A_TIME], waiting[AT_A_TIME:]
        queries = {"queries": [query for _, query in asked]}
        results = _ask(f"{database}/v1/querybatch", queries)["results"]
        for (package, query), result in zip(asked, results, strict=True):
            for vulnerability in result.get("vulns", []):
                yield package, vulnerability["id"]
            if token := result.get("next_page_token"):
                waiting.append((package, query | {"page_token": token}))


def description(vulnerability: str, database: str) -> str:
    """Return other names of a vulnerability, what it is, and the versions that mend it."""
    told = _ask(f"{database}/v1/vulns/{vulnerability}")
    fixed = {
        event["fixed"]
        for affected in told.get("affected", [])
        for span in affected.get("ranges", [])
        if span.get("type") != "GIT"
        for event in span.get("events", [])
        if "fixed" in event
    }
    names = ", ".join(told.get("aliases", []))
    summary = told.get("summary") or " ".join(told.get("details", "").split())[:150]
    text = f"{vulnerability}{f' ({names})' if names else ''}: {summary}"
    text += f"; mended in {', '.join(sorted(fixed))}" if fixed else "; not mended yet"
    return "".join(filter(str.isprintable, text))


def _ask(url: str, question: Any = None) -> Any:
    data = None if question is None else json.dumps(question).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - the user's address
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
        return json.loads(answer.read())


def accepted(path: Path) -> dict[str, str]:
    """Return the reasons of what is accepted, by its name."""
    if not path.is_file():
        return {}
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return {name: reason for name, _, reason in (line.partition(" ") for line in lines if line)}


def licences() -> dict[str, str]:
    """Return the licences of the packages that are installed here, by name."""
    found = {}
    for package in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
        classifiers = package.metadata.get_all("Classifier", [])
        given = [c.rpartition(" :: ")[2] for c in classifiers if c.startswith("License ::")]
        text = package.metadata.get("License-Expression") or "; ".join(given)
        found[name] = LICENCES.get(name) or text or (package.metadata.get("License") or "")[:200]
    return found


def not_permissive(licences: dict[str, str]) -> list[str]:
    """Return a line for each package whose licence is not known to be permissive."""
    return [
        f"{name}: licence {licence or 'unknown'!r}"
        for name, licence in sorted(licences.items())
        if COPYLEFT.search(licence) or not PERMISSIVE.search(licence)
    ]


def main() -> int:
    """Print what is found; return the exit code."""
    parser = argparse.ArgumentParser(prog="./run audit", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--database", default=DATABASE, help="of OSV's form")
    parser.add_argument("--envs", type=Path, default=ENVS, help="folder of the locks")
    options = parser.parse_args()
    found = not_permissive(licences())
    print("\n".join(found or ["licences: all that is installed here is permissive"]))
    packages, known = locked(options.envs), accepted(options.envs / "accepted.txt")
    try:
        for package, vulnerability in vulnerabilities(packages, options.database):
            where = f"{' '.join(package)} ({', '.join(packages[package])})"
            if vulnerability in known:
                print(f"{where}: {vulnerability} is accepted: {known[vulnerability]}")
                continue
            found.append(vulnerability)
            print(f"{where}: {description(vulnerability, options.database)}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(
            f"vulnerabilities: NOTHING IS KNOWN: {options.database} cannot be reached or does not "
            f"answer as it should ({error})",
            file=sys.stderr,
        )
        return FOUND if found else UNREACHABLE
    if not found:
        print(f"vulnerabilities: none is known of the {len(packages)} versions of the locks")
    return FOUND if found else 0


if __name__ == "__main__":
    sys.exit(main())
