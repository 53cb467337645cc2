"""Commands that call the lab beside the package: experiments and benchmarks by name."""
