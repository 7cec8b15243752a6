"""One module per figure, each with `draw(results) -> Figure`.

What a figure shows of a study, and whether a study can have it, is in `respo.reporting.choices`.
"""
