"""Patterns that recur -> a page with their pictures."""
