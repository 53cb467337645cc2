"""Pairs of molecules and what changed between them -> tables, and a page with both drawn side by side."""
