"""Every version stands in a lock, the locks are in step, and the environments install them."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ENVS = ROOT / "envs"
GPU_ENVIRONMENTS = ["vllm", "verl-fsdp", "verl-megatron"]
ENVIRONMENTS = ["local", *GPU_ENVIRONMENTS]


def load_make_locks():
    """The script is no module of the package, since it runs without the package."""
    spec = importlib.util.spec_from_file_location("make_locks", ENVS / "make_locks.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_locks"] = module
    spec.loader.exec_module(module)
    return module


make_locks = load_make_locks()
LOCKS = make_locks.locks()
HASHED = [file for file, lock in LOCKS.items() if make_locks.HASHES in lock.options]


def versions(lines):
    """Version by normalised name, without markers and the local part of a build (2.13.0+cpu)."""
    pairs = (line.partition(" ;")[0].split("==") for line in lines)
    return {make_locks.name_of(name): version.partition("+")[0] for name, version in pairs}


def pins(file):
    return versions(make_locks.pins(file))


def test_every_dependency_is_pinned_and_installed_as_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    extras = project["optional-dependencies"]["peers"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in [*names, *extras]), (
        "versions are in the lock"
    )
    pinned = pins("lock.txt")
    # verl is installed by `./run peers`, without its dependencies.
    assert {make_locks.name_of(name) for name in [*extras, "verl"]} <= set(pinned)
    for name in names:
        installed = importlib.metadata.version(name).partition("+")[0]
        assert installed == pinned[make_locks.name_of(name)], name


@pytest.mark.parametrize("file", LOCKS)
def test_a_lock_is_in_step_with_what_it_is_made_from(file):
    written = make_locks.MADE_FROM.search((ENVS / file).read_text())
    assert written, file
    assert written[1] == LOCKS[file].made_from(), f"envs/{file}: run ./run lock"


@pytest.mark.parametrize("file", HASHED)
def test_every_package_of_a_lock_has_hashes_and_no_address(file):
    text = (ENVS / file).read_text()
    # A package of several lines, of which all but the first are hashes.
    for package in re.split(r"\n(?=[a-z0-9])", text.partition("\n# made from: ")[2])[1:]:
        first, *hashes = package.strip().replace(" \\", "").split("\n    ")
        assert re.match(r"[a-z0-9-]+==[^ ]+( ; .+)?$", first), first
        assert hashes, first
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line) for line in hashes), first
    assert "/" not in re.sub("^#.*", "", text, flags=re.MULTILINE), "an address or a folder"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_lock_has_everything_that_is_asked_for(name):
    lock = LOCKS[f"{name}.lock"]
    locked = pins(lock.file)
    assert {make_locks.name_of(requirement) for requirement in lock.asked} <= set(locked)
    for requirement in lock.asked:
        if "==" in requirement:
            assert locked[make_locks.name_of(requirement)] == requirement.partition("==")[2]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_have_the_same_versions_but_for_what_their_list_names(name):
    own = versions(line for line in LOCKS[f"{name}.lock"].asked if "==" in line)
    for other in ["lock.txt", *(f"{other}.lock" for other in GPU_ENVIRONMENTS)]:
        if name == "local" and other != "lock.txt":
            continue
        locked, expected = pins(f"{name}.lock"), pins(other)
        for package in locked.keys() & expected.keys() - own.keys():
            assert locked[package] == expected[package], (package, other)


def test_the_list_for_verl_on_a_cpu_has_the_locked_versions():
    lines = (ENVS / "verl-cpu.txt").read_text().splitlines()
    listed = versions(line for line in lines if line and not line.startswith("#"))
    for file, apart in {
        # The three that GPUs have in their own versions too.
        "lock.txt": {"fastapi", "numpy", "setuptools"},
        # vLLM's build for CPUs is of another release, which wants another torch and grammars.
        "verl-megatron.lock": {"torch", "apache-tvm-ffi", "xgrammar"},
    }.items():
        expected = pins(file)
        assert {
            package
            for package in listed.keys() & expected.keys()
            if listed[package] != expected[package]
        } <= apart, file


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_conda_makes_an_environment_anew_when_what_it_installs_changes(name):
    # Snakemake hashes the two files; packages of conda beside python and pip would not be locked.
    dependencies = yaml.safe_load((ENVS / f"{name}.yaml").read_text())["dependencies"]
    assert [re.sub("=.*", "", package) for package in dependencies] == ["python", "pip"]
    script = (ENVS / f"{name}.post-deploy.sh").read_text()
    assert make_locks.name_hashes(script) == script, "run ./run lock"
    named = {match[1] for match in make_locks.NAMED_HASH.finditer(script)}
    assert named == {"install.sh", *(path.name for path in ENVS.glob(f"{name}.*lock"))}


@pytest.fixture
def machine(tmp_path):
    """A project's folder whose Python notes how it was called, and a PATH without a compiler."""
    shutil.copytree(ENVS, tmp_path / "project" / "envs")
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "sed", "cat", "env"):
        (tools / tool).symlink_to(shutil.which(tool))
    program(tools / "python", 'echo "$PYTHONNOUSERSITE $*" >>"$CALLS"')
    return tmp_path


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def post_deploy(machine, name, folder="project", **environment):
    """Run the script of an environment; what Python was called with, and what was said."""
    calls = machine / "calls"
    done = subprocess.run(
        ["sh", str(ENVS / f"{name}.post-deploy.sh")],
        cwd=machine / folder,
        env={"PATH": str(machine / "tools"), "CALLS": str(calls), **environment},
        capture_output=True,
        text=True,
    )
    return done, calls.read_text().splitlines() if calls.exists() else []


PIP = "1 -m pip install --quiet --no-deps"
PROJECT = f"{PIP} --no-build-isolation -e ."


@pytest.mark.parametrize("name", ["local", "vllm"])
def test_the_locked_packages_and_the_project_are_installed(machine, name):
    done, calls = post_deploy(machine, name)
    assert done.returncode == 0, done.stderr
    assert calls == [f"{PIP} --require-hashes -r envs/{name}.lock", PROJECT]


@pytest.mark.parametrize("name", ["verl-fsdp", "verl-megatron"])
def test_without_a_compiler_the_message_names_what_has_no_wheel(machine, name):
    done, calls = post_deploy(machine, name)
    assert done.returncode == 1
    assert calls == [f"{PIP} --require-hashes -r envs/{name}.lock"]
    assert "flash-attn 2.8.3" in done.stderr
    assert ("transformer-engine-torch 2.12.0" in done.stderr) == (name == "verl-megatron")
    assert "RESPO_WHEELS" in done.stderr
    assert "CUDA_HOME" in done.stderr


def test_what_has_no_wheel_is_built_from_hashed_sources(machine):
    program(machine / "cuda" / "bin" / "nvcc", "")
    done, calls = post_deploy(machine, "verl-fsdp", CUDA_HOME=str(machine / "cuda"))
    assert done.returncode == 0, done.stderr
    sources = f"{PIP} --require-hashes --no-build-isolation -r envs/verl-fsdp.sources.lock"
    assert calls[1:] == [sources, PROJECT]


def test_what_has_no_wheel_can_come_from_a_folder_of_wheels(machine):
    done, calls = post_deploy(machine, "verl-megatron", RESPO_WHEELS="/wheels")
    assert done.returncode == 0, done.stderr
    engine = [f"transformer-engine{part}==2.12.0" for part in ("", "-cu13", "-torch")]
    wheels = " ".join([f"{PIP} --no-index --find-links /wheels flash-attn==2.8.3", *engine])
    assert calls[1:] == [wheels, PROJECT]


def test_an_installation_that_fails_is_a_failure(machine):
    program(machine / "tools" / "python", "exit 3")
    assert post_deploy(machine, "local")[0].returncode == 3


def test_an_installation_elsewhere_is_refused(machine):
    done, calls = post_deploy(machine, "local", folder="tools")
    assert done.returncode != 0
    assert "envs/install.sh" in done.stderr
    assert not calls


@pytest.fixture
def in_env(tmp_path):
    """Run `workflow/in-env` of a copied project, where `which-python` says where it lies."""
    project = tmp_path / "a project"
    (project / "workflow").mkdir(parents=True)
    shutil.copy(ROOT / "workflow" / "in-env", project / "workflow")
    program(tmp_path / "outer" / "which-python", 'echo outer "$@"')

    def run(*arguments, **environment):
        path = f"{tmp_path / 'outer'}{os.pathsep}{os.defpath}"
        return subprocess.run(
            [str(project / "workflow" / "in-env"), *arguments],
            cwd=tmp_path,
            env={"PATH": path, **environment},
            capture_output=True,
            text=True,
        )

    run.project = project
    return run


def test_a_command_runs_in_the_python_of_snakemake_without_an_environment(in_env):
    done = in_env("vllm", "which-python", "a b", "*")
    assert done.stdout == "outer a b *\n"


def test_a_command_runs_in_the_environment_of_its_name(in_env):
    program(in_env.project / ".venv-vllm" / "bin" / "which-python", 'echo vllm "$VIRTUAL_ENV" "$@"')
    done = in_env("vllm", "which-python", "a b")
    assert done.stdout == f"vllm {in_env.project / '.venv-vllm'} a b\n"
    assert in_env("verl-fsdp", "which-python").stdout == "outer\n"


def test_an_environment_of_snakemake_goes_first(in_env, tmp_path):
    program(in_env.project / ".venv-vllm" / "bin" / "which-python", "echo vllm")
    conda = tmp_path / "conda" / "0123456789abcdef_"
    program(conda / "bin" / "which-python", "echo conda")
    activated = {"PATH": f"{conda / 'bin'}:{os.defpath}", "CONDA_PREFIX": str(conda)}
    # The user's own environment, in which snakemake was started, is not the job's.
    assert in_env("vllm", "which-python", **activated).stdout == "vllm\n"
    Path(f"{conda}.env_setup_done").touch()
    assert in_env("vllm", "which-python", **activated).stdout == "conda\n"


def test_the_exit_status_of_the_command_is_passed_on(in_env):
    assert in_env("vllm", "sh", "-c", "exit 7").returncode == 7
    assert in_env("vllm", "env").stdout.splitlines().count("PYTHONNOUSERSITE=1") == 1


@pytest.fixture
def run_command(tmp_path):
    """Run `./run` of a copied project."""
    shutil.copy(ROOT / "run", tmp_path)
    shutil.copytree(ENVS, tmp_path / "envs")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def run(*arguments, **environment):
        return subprocess.run(
            [str(tmp_path / "run"), *arguments],
            env={"PATH": os.environ["PATH"], **environment},
            capture_output=True,
            text=True,
        )

    return run


def test_setting_up_names_the_environments(run_command):
    shown = run_command().stderr.split("make .venv-ENVIRONMENT: ")[1].split()
    assert shown == [*sorted(ENVIRONMENTS), "verl-cpu"]
    done = run_command("setup", "verl")
    assert done.returncode == 1
    assert "there are: local verl-fsdp verl-megatron vllm verl-cpu" in done.stderr


@pytest.mark.parametrize(
    ("version", "wrong"),
    [
        ((3, 10), {"setup", "setup local", "setup vllm", "verl"}),
        ((3, 11), {"setup vllm"}),
        ((3, 12), {"verl"}),
        ((3, 13), {"setup vllm", "verl"}),
        (None, {"setup", "setup local", "setup vllm", "verl"}),
    ],
)
def test_setting_up_wants_the_right_python(run_command, tmp_path, version, wrong):
    python = tmp_path / "python"
    if version:
        # A Python of that version that can do nothing but say so.
        program(
            python,
            f"""case $1 in
            -) {{ echo 'import sys; sys.version_info = {(*version, 1)}'; cat; }} |
                {sys.executable} "$@" ;;
            *) exit 3 ;;
            esac""",
        )
    for command in ["setup", "setup local", "setup vllm", "verl"]:
        done = run_command(*command.split(), PYTHON=str(python))
        assert done.returncode == 1
        message = "is needed" if command in wrong else "cannot make a virtual environment"
        assert message in done.stderr, command
