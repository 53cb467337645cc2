"""Networks against the suite: a folder of tasks -> a row of scores a task and seed, beside controls and a peer."""
