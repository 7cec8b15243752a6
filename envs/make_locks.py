"""Write the locks of this folder: every package of each environment, its version and hashes.

`./run lock` keeps the versions that still fit, `./run lock --upgrade` takes the newest ones.
The only file that needs it is the project's `pyproject.toml`, for its dependencies, and the lists
`*.in` beside this file. A lock begins with the hash of what it was made from, and a test compares.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ENVS = Path(__file__).resolve().parent
PROJECT = tomllib.loads((ENVS.parent / "pyproject.toml").read_text())
DEPENDENCIES = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
# What runs in the environments for GPUs. Snakemake does not: it starts jobs with its own Python,
# and its plugin for Slurm wants a newer numpy than vLLM takes.
OF_JOBS = [name for name in DEPENDENCIES if not name.startswith("snakemake")]
EXTRAS = PROJECT["project"]["optional-dependencies"]

ANYWHERE = ("--universal", "--python-version=3.11")
GPU = ("--python-platform=x86_64-manylinux_2_31", "--python-version=3.12")
HASHES = "--generate-hashes"
ALONE = "--no-deps"
# Come with torch's build for GPUs alone, each build with its own versions.
WITH_CUDA = re.compile(r"(cuda|nvidia)-|triton\b")
MADE_FROM = re.compile(r"^# made from: ([0-9a-f]{64})$", re.MULTILINE)
NAMED_HASH = re.compile(r"^# sha256 of envs/(\S+): .*$", re.MULTILINE)


def requirements(name: str) -> list[str]:
    """Return the requirements of `name`.in and of the lists that it includes, without comments."""
    lines = []
    for line in (ENVS / f"{name}.in").read_text().splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            lines += requirements(text.removeprefix("-r ").removesuffix(".in"))
        elif text:
            lines.append(text)
    return lines


def name_of(requirement: str) -> str:
    """Return the normalised name of a requirement's package."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def pins(file: str) -> list[str]:
    """Return the lines `name==version ; marker` of a lock, without hashes."""
    lines = (line.rstrip(" \\") for line in (ENVS / file).read_text().splitlines())
    return [line for line in lines if re.match(r"[a-z0-9]", line)]


@dataclass(frozen=True)
class Lock:
    """One lock: what it is for, what is asked for, and the locks whose versions it keeps to."""

    file: str
    purpose: str
    asked: list[str]
    options: tuple[str, ...]
    like: tuple[str, ...] = ()
    alone: list[str] = field(default_factory=list)  # Packages without their dependencies.

    def constraints(self) -> list[str]:
        """Return the versions of the other locks, except of what is asked for in one version."""
        own = {name_of(line) for line in self.asked if "==" in line}
        return [pin for file in self.like for pin in pins(file) if name_of(pin) not in own]

    def made_from(self) -> str:
        """Return the hash of all that the lock is made from."""
        parts = [self.asked, self.options, self.alone, self.constraints()]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def make(self, upgrade: bool) -> None:
        """Resolve and write the lock."""
        path = ENVS / self.file
        lines = resolve(path, self.asked, self.constraints(), self.options, upgrade)
        if self.alone:
            lines += resolve(path, self.alone, [], (*self.options, ALONE), upgrade)
        if HASHES not in self.options:
            lines = sorted(line for line in lines if not WITH_CUDA.match(line))
        head = [f"# {self.purpose}. Written by `./run lock`.", f"# made from: {self.made_from()}"]
        path.write_text("\n".join([*head, *lines]) + "\n")


def resolve(
    path: Path, asked: list[str], constraints: list[str], options: tuple[str, ...], upgrade: bool
) -> list[str]:
    """Return the lines of a lock, with the versions of the file at `path` where they fit."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output.txt"
        if path.exists() and not upgrade:
            output.write_text(path.read_text())
        versions = Path(folder) / "constraints.txt"
        versions.write_text("\n".join(constraints) + "\n")
        quiet = ("--quiet", "--no-header", "--no-annotate", "--no-emit-index-url")
        done = subprocess.run(
            ["uv", "pip", "compile", *quiet, *options, "-c", versions, "-o", output, "-"],
            input="\n".join(asked),
            text=True,
            stderr=subprocess.PIPE,
        )
        if done.returncode:
            sys.exit(f"error: {path}: no versions fit together\n{done.stderr}")
        return output.read_text().splitlines()


def source(name: str, for_what: str) -> Lock:
    """Return the lock of what is built from source, or asks for such packages."""
    return Lock(
        f"{name}.sources.lock",
        f"What {for_what} needs beside envs/{name}.lock",
        requirements(f"{name}.sources"),
        (*GPU, HASHES, ALONE),
    )


def locks() -> dict[str, Lock]:
    """Return all locks by file, each after those that it keeps to."""
    everything = sum(EXTRAS.values(), start=DEPENDENCIES)
    megatron = "verl-megatron.lock"

    def gpu(name: str, purpose: str, like: tuple[str, ...]) -> Lock:
        asked = [*OF_JOBS, *requirements(name)]
        return Lock(f"{name}.lock", purpose, asked, (*GPU, HASHES), like)

    return {
        lock.file: lock
        for lock in [
            Lock(
                "lock.txt",
                "The versions of everything but GPU libraries, for Python 3.11 and newer",
                everything,
                ANYWHERE,
                alone=["verl"],
            ),
            Lock(
                "local.lock",
                "Local training, scoring, tables and figures",
                DEPENDENCIES,
                (*ANYWHERE, HASHES),
                ("lock.txt",),
            ),
            gpu("verl-megatron", "Training with verl and Megatron", ("lock.txt",)),
            gpu("verl-fsdp", "Training with verl and FSDP", ("lock.txt", megatron)),
            gpu("vllm", "Evaluation with vLLM", ("lock.txt", megatron)),
            source("verl-fsdp", "FSDP"),
            source("verl-megatron", "Megatron"),
        ]
    }


def name_hashes(script: str) -> str:
    """Return a post-deploy script that names the hashes of the files as they are."""

    def line(match: re.Match[str]) -> str:
        digest = hashlib.sha256((ENVS / match[1]).read_bytes()).hexdigest()
        return f"# sha256 of envs/{match[1]}: {digest}"

    return NAMED_HASH.sub(line, script)


def main() -> None:
    """Make all locks."""
    parser = argparse.ArgumentParser(prog="./run lock", description="Write the locks of envs/.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    upgrade = parser.parse_args().upgrade
    for name in locks():
        print(f"envs/{name}", flush=True)
        # Anew, since it keeps to locks that have been written by now.
        locks()[name].make(upgrade)
    for path in ENVS.glob("*.post-deploy.sh"):
        path.write_text(name_hashes(path.read_text()))


if __name__ == "__main__":
    main()
