"""Takes the merger's options and copies.

merge: `fails`; `mixes` the rows of a tensor; `hangs` and leaves a file `hangs` there.
"""

import shutil
import sys
import time
from pathlib import Path

from safetensors.numpy import load_file, save_file

from verl import PLAN

given = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
assert sys.argv[1] == "merge"
assert given["--backend"] == "fsdp"
source, target = Path(given["--local_dir"]), Path(given["--target_dir"])
plan = PLAN.get("merge")
if plan == "fails":
    sys.exit("no memory")
if plan == "hangs":
    (target / "hangs").touch()
    time.sleep(600)
shutil.copytree(source, target, dirs_exist_ok=True)
path = target / "model.safetensors"
weights = load_file(path)
name = "model.layers.0.mlp.down_proj.weight"
if plan == "mixes":
    weights[name] = weights[name][::-1].copy()
save_file(weights, path)
(target / "extra").mkdir()
