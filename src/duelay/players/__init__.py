"""Players: policies at work, what they have heard, and where they stand."""
