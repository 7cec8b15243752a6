"""The study as data: schema, loading, the grid of runs and their paths."""
