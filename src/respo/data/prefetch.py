"""`python -m respo.data.prefetch`: download what a study needs, for nodes without a network.

Run it where there is a network, in the project's folder. The files go to the folder of `--folder`,
else of `hub_cache` in config/config.yaml, else of HF_HUB_CACHE. Jobs find them there; with
HF_HUB_OFFLINE=1 they do not even try the network. It ends with a message where the folder of a
model (`path:`) is missing.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from respo.cli import command
from respo.config import ResolvedStudy, check_weights, load_settings, load_study
from respo.config.schema import Files, Union, VerlModel, VllmModel
from respo.data.hub import fetch, fetch_model
from respo.files import sha256_of


def _sets(resolved: ResolvedStudy) -> Iterator[Files]:
    """Yield the sets of files that a study reads, those inside a union too."""
    for data in [*resolved.datasets.values(), *resolved.benchmarks.values()]:
        for part in data.parts if isinstance(data, Union) else [data]:
            if isinstance(part, Files):
                yield part


@command
def main() -> None:
    """Parse the command line, fetch the files and tell what they are."""
    parser = argparse.ArgumentParser(prog="python -m respo.data.prefetch", description=__doc__)
    parser.add_argument("--study", help="a file of config/studies (default: of config.yaml)")
    parser.add_argument("--folder", help="the folder to fill (default: see above)")
    parser.add_argument("--config", type=Path, default=Path("config"), help="default: config")
    options = parser.parse_args()
    given = {"study": options.study, "hub_cache": options.folder}
    overrides = {key: value for key, value in given.items() if value is not None}
    settings = load_settings(options.config / "config.yaml", overrides)
    if settings.hub_cache_folder:
        # Read by huggingface_hub when it is imported, which is later.
        os.environ["HF_HUB_CACHE"] = str(settings.hub_cache_folder)
    resolved = load_study(options.config, settings.study, settings.own_methods_folder)
    count = 0
    for data in _sets(resolved):
        if data.hub and data.revision and data.files:
            paths, commit = fetch(data.hub, data.revision, data.files)
            for file, path in zip(data.files, paths, strict=True):
                print(f"{data.hub} {commit} {file} sha256 {sha256_of(path)}", flush=True)
            count += len(paths)
    checkpoints = {
        (model.checkpoint.hub, model.checkpoint.revision)
        for model in resolved.models.values()
        if isinstance(model, VerlModel | VllmModel)
    }
    for repository, revision in sorted((hub, rev) for hub, rev in checkpoints if hub and rev):
        print(f"{repository} {fetch_model(repository, revision).name}", flush=True)
        count += 1
    print(f"study {settings.study}: {count} files and models of the hub are here", flush=True)
    check_weights(resolved, options.config)


if __name__ == "__main__":
    main()
