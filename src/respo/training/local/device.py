"""Where training runs: a check that it can, and what it used."""

import resource

import torch

from respo.cli import UserError


def check_device(device: str) -> None:
    """Refuse a device that this machine does not have.

    Raises:
        UserError: with the devices there are.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"--device {device}: cannot be used here ({reason}); try cpu") from None


def device_name(device: str) -> str:
    """Return ``cpu``, or the name of the GPU."""
    return device if device == "cpu" else f"{device} ({torch.cuda.get_device_name(device)})"


def peak_memory_mb(device: str) -> dict[str, int]:
    """Return the most memory that was in use so far, of the process and of the GPU."""
    peak = {"process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}
    if device != "cpu":
        peak["gpu"] = torch.cuda.max_memory_allocated(device) // 2**20
    return peak
