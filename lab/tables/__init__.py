"""The paper's tables, run again: ours beside what it prints."""
