"""Training sets and benchmarks in one row schema: `id`, `prompt`, `answer`."""
