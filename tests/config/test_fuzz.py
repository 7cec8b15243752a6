"""Any file is either read or refused in one message that names it: never another exception."""

import os
import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from respo.cli import UserError
from respo.config import load_settings, load_study
from respo.config.load import load_cluster, load_data_config, load_model, load_run_config
from respo.config.yaml import read_yaml

CONFIG = Path(__file__).parents[2] / "config"
FUZZ = int(os.environ.get("RESPO_FUZZ", "1"))  # times as many examples
FILES = sorted(
    path
    for folder in ("studies", "methods", "models", "datasets", "benchmarks")
    for path in (CONFIG / folder).glob("*.yaml")
)
few = settings(
    max_examples=40 * FUZZ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
many = settings(few, max_examples=200 * FUZZ)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["", "../x", "a b", "a\nb", "{a}", "$(id)", "1e-4", "\x1b[31m", "é", "‮", "x" * 999]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=6,
)
YAML = st.lists(
    st.sampled_from(
        [*"abc:-?[]{}&*!|>'\"%@`#,~\n\n\t  019.e", "<<", "!!", "---", "...", "&a ", "*a", "\ufeff"]
    ),
    max_size=30,
).map("".join) | st.text(max_size=30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Path(shutil.copytree(CONFIG, tmp_path_factory.mktemp("fuzz") / "config"))


def refused_or(load, path: Path) -> None:
    """Load something; a refusal names a file and shows no raw characters."""
    try:
        load()
    except UserError as error:
        text = str(error)
        assert str(path) in text or "config/" in text
        assert "\x1b" not in text


@given(YAML | st.binary(max_size=30))
@many
def test_any_text(folder, text):
    path = folder / "any.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    refused_or(lambda: read_yaml(path), path)
    for load in (load_cluster, load_data_config, load_model, load_run_config):
        refused_or(lambda load=load: load(path), path)


def loader(folder: Path, path: Path):
    """Return what reads a file of the configuration, and all that depends on it."""
    match path.parent.name:
        case "studies":
            return lambda: load_study(folder, path.stem)
        case "models":
            return lambda: load_model(path)
        case "datasets" | "benchmarks":
            return lambda: load_data_config(path)
    return lambda: load_study(folder, "tiny")


def keys(values, before=()):
    """Yield the way to each key and item."""
    for key, value in values.items() if isinstance(values, dict) else enumerate(values):
        yield (*before, key)
        if isinstance(value, dict | list):
            yield from keys(value, (*before, key))


@given(st.sampled_from(FILES), st.data())
@few
def test_a_file_with_another_value(folder, original, data):
    """One key of a real file has another value, is gone, or has a neighbour that nobody knows."""
    values = yaml.safe_load(original.read_text())
    *way, last = data.draw(st.sampled_from(list(keys(values))))
    place = values
    for key in way:
        place = place[key]
    match data.draw(st.sampled_from(["other", "gone", "more"])):
        case "other":
            place[last] = data.draw(VALUES)
        case "gone":
            del place[last]
        case "more" if isinstance(place, dict):
            place[data.draw(st.text(max_size=8))] = data.draw(VALUES)
    path = folder / original.relative_to(CONFIG)
    text = path.read_text()
    path.write_text(yaml.safe_dump(values))
    try:
        refused_or(loader(folder, path), path)
    finally:
        path.write_text(text)


@given(st.sampled_from(FILES), st.data())
@few
def test_a_file_with_other_characters(folder, original, data):
    """A piece of a real file is replaced."""
    text = original.read_text()
    start = data.draw(st.integers(0, len(text)))
    end = start + data.draw(st.integers(0, 20))
    path = folder / original.relative_to(CONFIG)
    path.write_text(text[:start] + data.draw(YAML.filter(str.isprintable)) + text[end:])
    try:
        refused_or(loader(folder, path), path)
    finally:
        path.write_text(text)


@given(
    st.dictionaries(
        st.sampled_from(["study", "results", "device", "hub_cache", "own_methods", "loggers", "x"]),
        VALUES,
        max_size=3,
    )
)
@many
def test_any_value_of_the_command_line(overrides):
    """What gets through has no way out of `config/studies`, and no wildcard."""
    try:
        loaded = load_settings(CONFIG / "config.yaml", overrides)
    except UserError as error:
        refusal = str(error)
    else:
        assert not set(loaded.study) & set("/\\ \n\0")
        assert loaded.study not in ("", ".", "..")
        assert not set(loaded.results) & set("{}\n\0")
        return
    assert "--config" in refusal


def test_texts_that_grow_when_they_are_read(tmp_path):
    """Ten lines that stand for billions of values; one that holds itself."""
    path = tmp_path / "bomb.yaml"
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    for text in ("\n".join([*lines, "account: *a9"]), "account: &a [*a]", "&a\naccount: *a"):
        path.write_text(text)
        with pytest.raises(UserError, match="is not read"):
            load_cluster(path)
