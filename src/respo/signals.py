"""Snakemake ends when it is asked to, whatever it is doing."""

import signal
from threading import Thread


def handle_in_thread(number: signal.Signals) -> None:
    """Let a thread of its own call the present handler of a signal, if there is one.

    Snakemake's handler of SIGTERM takes the lock of its scheduler. The main thread, which runs
    handlers, may hold that lock already, and would wait for itself for ever.
    """
    handler = signal.getsignal(number)
    if callable(handler):
        signal.signal(number, lambda *arguments: Thread(target=handler, args=arguments).start())
