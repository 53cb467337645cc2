"""The ego-convolution on a GPU: a neighbour table in tiles -> one fused kernel, and its gradients."""
