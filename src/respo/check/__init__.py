"""Is a results folder whole? Without Snakemake, and without making anything anew.

Every file that the study expects, or that lies there, is read to its end; hashes that files hold
of each other are compared; cells and tables are computed again.
"""
