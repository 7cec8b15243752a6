"""Where files of a results folder come from: what is recorded, and whether it still holds."""
