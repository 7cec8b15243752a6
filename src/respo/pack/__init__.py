"""The results of a study as one file, for others to check and to draw from."""
