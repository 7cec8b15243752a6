"""What a study costs before it is started: jobs, GPU-hours, disk, and the longest chain."""
