"""Where a number comes from, for people to read."""
