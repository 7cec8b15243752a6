"""One module per table, each with `render(results) -> {suffix: text}`."""
