"""Where files of a results folder come from: what is recorded, and whether it still holds.

`respo.provenance.read.read(path)` tells it of one path; `python -m respo.explain` prints that.
"""
