"""How every command of the project ends: cleanly, or with one message that says what to do."""

import errno
import functools
import os
import sys
from collections.abc import Callable


class UserError(Exception):
    """An error the user can mend; the text names the file, the key or column, and the remedy."""


def explain(error: OSError) -> str:
    """One line for an error of the operating system: the file, what is wrong, the remedy."""
    where = error.filename or "a file"
    if error.errno == errno.ENOSPC:
        return f"{where}: the disk is full. Free some space and start again; nothing is lost."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{where}: {error.strerror}. Change the permissions or choose another folder."
    return f"{where}: {error.strerror or error}"


def printable(text: str) -> str:
    """Write out what a terminal would obey: texts of files stand in messages, and may hold it."""
    return "".join(
        character
        if character.isprintable() or character == "\n"
        else character.encode("unicode_escape").decode()
        for character in text
    )


def say(text: str) -> None:
    """Print what others may have written: names of files, and what stands in them."""
    print(printable(text))


def command(main: Callable[[], None]) -> Callable[[], None]:
    """Turn expected errors of ``main`` into one line on standard error and an exit code.

    1 for a `UserError` or an operating system error, 130 after Ctrl-C and 141 if the reader of the
    output went away, as shells expect.
    """

    @functools.wraps(main)
    def run() -> None:
        try:
            main()
            sys.stdout.flush()
        except UserError as error:
            sys.exit(f"error: {printable(str(error))}")
        except BrokenPipeError:
            # The reader (head, less) went away: nobody to tell. Keep Python from flushing again,
            # and end as programs do that the signal kills: the work may be unfinished.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        except OSError as error:
            sys.exit(f"error: {printable(explain(error))}")
        except KeyboardInterrupt:
            print("interrupted; the next start continues", file=sys.stderr)
            sys.exit(130)

    return run
