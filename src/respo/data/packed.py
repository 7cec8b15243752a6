"""The private tests of LiveCodeBench, which are packed: base64 of zlib of a pickled text.

A pickle can run any program when it is loaded, so none is: the one text is read out of its
instructions, of which only those are allowed that a text alone needs.
"""

import base64
import pickletools
import zlib
from typing import Any

# No more is unpacked: the longest of LiveCodeBench, by public code, has 190 MB.
MAX_BYTES = 512 * 1024**2
TEXT = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"}
OTHERS = {"PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "STOP"}


def unpack(packed: str, max_bytes: int = MAX_BYTES) -> str:
    """Return the text that base64 of zlib of its pickle holds.

    Args:
        packed: the base64 text.
        max_bytes: most bytes of the pickle.

    Raises:
        ValueError: it is anything else, or longer.
    """
    try:
        compressed = base64.b64decode(packed, validate=True)
        decompressor = zlib.decompressobj()
        pickled = decompressor.decompress(compressed, max_bytes)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"neither JSON nor base64 of zlib ({error})") from None
    if decompressor.unconsumed_tail:
        raise ValueError(f"more than {max_bytes} bytes when decompressed")
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("zlib data that is cut off or has something behind it")
    return text_of_pickle(pickled)


def text_of_pickle(pickled: bytes) -> str:
    """Return the text that a pickle holds, without loading it.

    Raises:
        ValueError: it is no pickle, or one of anything but one text.
    """
    texts: list[Any] = []
    try:
        for instruction, argument, _ in pickletools.genops(pickled):
            if instruction.name in TEXT:
                texts.append(argument)
            elif instruction.name not in OTHERS:
                raise ValueError(f"a pickle with {instruction.name}, not of one text alone")
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"{error}"[:200]) from None
    if len(texts) != 1:
        raise ValueError(f"a pickle of {len(texts)} texts, not of one")
    return str(texts[0])
