"""The grid of a study at a glance, from its files alone, also while it runs elsewhere."""
