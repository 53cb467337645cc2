"""PyTorch Geometric is imported here, where it is no error that it uses what torch has deprecated."""

import warnings
from contextlib import suppress

with warnings.catch_warnings(), suppress(ImportError):
    warnings.simplefilter("ignore")
    import torch_geometric.explain
    import torch_geometric.nn  # noqa: F401
