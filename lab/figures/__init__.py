"""Pictures and patterns: trained models or records -> the paper's figures, recurring patterns, the chart of speeds."""
