"""One module per table, `PAPER_tableN.py` for the id `PAPER/tableN`.

Each has:

- `applies(study)`: why the table cannot be made for a study; None if it can
- `inputs(study)`: the files that it is made from, below the study's folder
- `make(results)`: the `Table`
- `PRINTED`: where the paper prints its values, sources of `config/reference`; () for nowhere
- `SECTIONS`: names of its further tables, which have CSV and LaTeX files of their own

Snakemake asks the first two at every start: a module must import without torch and matplotlib.
"""
