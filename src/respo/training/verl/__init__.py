"""The project's objectives in verl."""
