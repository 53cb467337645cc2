"""Several processes, started by torchrun, train one network: shares of every batch -> the weights of one process."""
