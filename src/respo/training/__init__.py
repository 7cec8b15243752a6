"""Training of policies with the project's objectives and rewards."""
