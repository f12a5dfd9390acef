"""Inference from duels and answers: estimates, intervals, evidence, the standing."""
