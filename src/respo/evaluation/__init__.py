"""From a checkpoint to one cell of a table: generate, score, sum up."""
