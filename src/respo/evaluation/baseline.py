"""`python -m respo.evaluation.baseline`: a model as it comes, as a run that ended at update 0.

Writes the `train.json` of such a run, so that its weights are evaluated as those of any other: its
only checkpoint, 0, is the model's common initial weights, and its configuration is that which they
were made or found by.
"""

import argparse
from pathlib import Path

from respo.cli import UserError, command
from respo.environment import environment
from respo.files import read_json, sha256_of, write_record


@command
def main() -> None:
    """Parse the command line and write the file."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.evaluation.baseline", description=__doc__
    )
    parser.add_argument(
        "--initial", type=Path, required=True, help="initial.json, config.yaml beside it"
    )
    parser.add_argument("--out", type=Path, required=True, help="train.json to write")
    options = parser.parse_args()
    record = read_json(options.initial)
    sha256 = record.get("weights_sha256") if isinstance(record, dict) else None
    if not isinstance(sha256, str):
        raise UserError(
            f"{options.initial}: weights_sha256: is missing or no text; make the weights anew: "
            f"snakemake --forcerun {options.initial}"
        )
    write_record(
        options.out,
        {
            "update": 0,
            "config_sha256": sha256_of(options.initial.with_name("config.yaml")),
            "initial_sha256": sha256,
            "checkpoints": {"0": sha256},
            "versions": environment(),
        },
    )


if __name__ == "__main__":
    main()
