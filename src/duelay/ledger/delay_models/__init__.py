"""What a policy assumes about the delay: one type of state for each assumption."""
