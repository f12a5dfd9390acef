"""Compare the counters and the evidence of a database with a recount of its duels."""
