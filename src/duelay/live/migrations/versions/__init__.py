"""The steps, each after the one before."""
