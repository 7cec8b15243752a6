import os
import signal
import threading

from respo.signals import handle_in_thread


def test_a_handler_may_take_a_lock_that_the_main_thread_holds():
    lock, called = threading.Lock(), threading.Event()

    def handler(number, frame):
        with lock:
            called.set()

    before = signal.signal(signal.SIGTERM, handler)
    try:
        handle_in_thread(signal.SIGTERM)
        with lock:
            os.kill(os.getpid(), signal.SIGTERM)
            assert not called.is_set()
        assert called.wait(10)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_where_there_is_no_handler_the_signal_does_what_it_does():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        handle_in_thread(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
