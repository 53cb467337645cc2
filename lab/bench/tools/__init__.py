"""What benchmarks measure with: clocks, the machine's ceilings, problems to solve, and peers to solve them beside."""
