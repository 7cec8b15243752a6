# What is looked at before any work starts, and what is said at the start and at the end.

import signal

from respo.cli import explain
from respo.config import check_weights, renew_outdated
from respo.files import check_writable
from respo.locks import clear_stale_locks
from respo.signals import handle_in_thread
from respo.times import settle_times
from respo.training.verl.options import check_overrides

for run in RUNS:
    if isinstance(model := resolved.models[run.model], VerlModel):
        try:
            check_overrides(resolved.run_config(run, ""), model.resources)
        except UserError as error:
            fail(f"{run.name}: {error}")

# A target names its study too; snakemake would only say that it knows no rule for it.
STUDIES = {path.name for path in (CONFIG / "studies").iterdir()}
for target in sys.argv[1:]:
    results, _, path = target.partition(f"{settings.results}/")
    other = path.split("/")[0]
    if not results and other != settings.study and f"{other}.yaml" in STUDIES:
        fail(
            f"{target}: is of study {other!r}, and this is {settings.study!r}; put --config "
            f"study={other} behind it"
        )

# Jobs on other machines read this file too, but touch nothing. A dry run renews outdated configuration
# files as a real one does, or it would not tell what the real one makes.
if workflow.is_main_process:
    try:
        check_weights(resolved, CONFIG)
    except UserError as error:
        fail(error)
    try:
        alive = clear_stale_locks(Path(".snakemake"))
    except OSError as error:
        fail(
            f"{explain(error)} Snakemake needs it, also to show what it would do; or start it in a "
            "checkout of your own, with --config results=FOLDER for results that lie elsewhere"
        )
    try:
        if not workflow.output_settings.dryrun:
            check_writable(Path(STUDY))
        for path in renew_outdated(CONFIG_TEXTS) if alive.alone else []:
            print(
                f"{path}: has changed, and is written anew"
                f"{', as a start does' if workflow.output_settings.dryrun else ''}; what depends on it "
                "is made anew"
            )
        if alive.alone and (settled := settle_times(Path(STUDY))):
            print(
                f"{STUDY}: {len(settled)} files are older than what they are made from (copied, or "
                "finished while snakemake was gone); their hashes agree, and they are kept"
            )
    except OSError as error:
        # A dry run needs no writable results.
        if not workflow.output_settings.dryrun:
            fail(explain(error))


def announcement():
    """What is about to be made."""
    runs = f"{len(RUNS)} runs of {study.updates} updates, " if RUNS else ""
    return (
        f"Study {settings.study}: {runs}{len(cells(resolved.checkpoints))} cells, "
        f"results in {STUDY}"
    )


def farewell():
    """Where the finished products lie; nothing if a cell was asked for and they are not there."""
    made = [*TABLES, *FIGURES, EXPLORE, REPORT]
    if not all(Path(path).exists() for path in made):
        return ""
    return "\n  ".join(["Finished. Tables, figures and report of the study:", *made])
