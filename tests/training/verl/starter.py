"""Starts `python -m respo.training.verl` many times, but loads its modules once.

Reads a line of JSON for each start, {arguments, environment, log}, and says the process id. The
exit code of a process is in LOG.code; one that was killed writes none.
"""

import json
import os
import signal
import sys
from pathlib import Path

from transformers import AutoTokenizer  # noqa: F401

from respo.training.verl import __main__ as program


def run(arguments, environment, log):
    """In a process of its own; does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(environment)
    # As the interpreter does.
    sys.path[1:1] = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = ["respo.training.verl", *arguments]
    code = 1
    try:
        program.main()
        code = 0
    except SystemExit as error:
        # As the interpreter does.
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        else:
            code = error.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        Path(f"{log}.code").write_text(str(code))
        os._exit(1)


signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # they are gone when they end
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        run(**json.loads(line))
    print(process, flush=True)
