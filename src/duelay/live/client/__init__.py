"""Clients of the service, with the calls of `Experiment`."""
