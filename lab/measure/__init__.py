"""One script a question of speed, memory or agreement -> a record in results/."""
