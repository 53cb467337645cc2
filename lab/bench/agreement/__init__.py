"""Do two ways to compute agree? One script a pair -> the largest differences, a record in results/."""
