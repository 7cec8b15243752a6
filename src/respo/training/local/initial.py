"""Initial weights as they lie on disk: ``weights/`` and, beside it, ``initial.json``."""

from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.files import read_json
from respo.policy import Policy, load_policy, policy_hash
from respo.weight_files import check_sums

RECORD, WEIGHTS = "initial.json", "weights"


def load_initial(folder: Path, device: str) -> tuple[Policy, str]:
    """Load initial weights; return the policy and the hash of the weights.

    If ``initial.json`` lies beside the folder, they must be the weights that it names. Weights from
    elsewhere have no such file.

    Raises:
        UserError: they are missing, damaged or others; the text names the folder and the remedy.
    """
    record = folder.parent / RECORD
    if not record.is_file():
        return load_policy(folder, device), policy_hash(folder)
    try:
        sha256 = policy_hash(folder)
        if sha256 != read_record(record)["weights_sha256"]:
            raise UserError(f"the weights are not those that {RECORD} names")
        check_sums(folder)
        return load_policy(folder, device), sha256
    except UserError as error:
        raise UserError(
            f"{folder}: the initial weights cannot be used ({error}); "
            f"make them anew: snakemake --forcerun {record}"
        ) from None


def is_made(out: Path, inputs: dict[str, str]) -> bool:
    """Tell whether whole initial weights that were made from the same inputs are in a folder."""
    try:
        record = read_record(out / RECORD)
        load_initial(out / WEIGHTS, "cpu")
    except UserError:
        return False
    return {key: record.get(key) for key in inputs} == inputs


def read_record(path: Path) -> dict[str, Any]:
    """Read ``initial.json``.

    Raises:
        UserError: it is missing or damaged.
    """
    record = read_json(path)
    if not isinstance(record, dict) or "weights_sha256" not in record:
        raise UserError(f"{path}: weights_sha256 is missing")
    return record
