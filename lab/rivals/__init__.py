"""Peers to compare with, from PyTorch Geometric: a GINE network, and the usual ways to explain it."""

from lab.rivals.explainers import Explained, cam, gnn_explainer, integrated_gradients, occlusion, pg_explainer
from lab.rivals.gine import GINE, FittedGINE, GINEConfig, fit

__all__ = [
    "GINE",
    "Explained",
    "FittedGINE",
    "GINEConfig",
    "cam",
    "fit",
    "gnn_explainer",
    "integrated_gradients",
    "occlusion",
    "pg_explainer",
]
