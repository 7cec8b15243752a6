"""One interactive HTML page of a study: grid, cells with their provenance, curves, responses."""
