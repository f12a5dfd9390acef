"""What everything stands on: checks, files, compiled kernels. Not public."""
