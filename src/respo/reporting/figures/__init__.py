"""One module per figure, each with `draw(results) -> Figure`."""
