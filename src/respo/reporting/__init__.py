"""Tables and figures, drawn from a results folder alone.

Each table and figure is one module, `tables/PAPER_NAME.py` or `figures/PAPER_NAME.py`; its id is
`PAPER/NAME`. To add one, add the file and its id to `respo.config.schema.types`; for a figure, also
what it shows to `respo.reporting.choices`.
"""
