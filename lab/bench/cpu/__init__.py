"""Seconds on a CPU: one script a question -> a record in results/."""
