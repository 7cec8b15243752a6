"""Finding the program in a response."""

_FENCE = "```"


def last_program(response: str) -> str | None:
    """Return the last fenced code block of a response, or None if there is none or it is blank.

    LiveCodeBench's rule for chat models (`extract_code` of its runner), to the letter: the lines
    between the last two lines that contain three backticks, whatever language they name. So a
    response that was cut within a block has, for its program, the prose before that block.
    """
    lines = response.split("\n")
    fences = [number for number, line in enumerate(lines) if _FENCE in line]
    if len(fences) < 2:
        return None
    program = "\n".join(lines[fences[-2] + 1 : fences[-1]])
    return program if program.strip() else None
