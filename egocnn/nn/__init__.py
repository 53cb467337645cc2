"""The layers and the model, as plain torch modules."""

from egocnn.nn.conv import EgoConv
from egocnn.nn.embed import Attributes, PatchySan
from egocnn.nn.model import EgoCNN, Output
from egocnn.nn.readout import Pool, SortPool

__all__ = ["Attributes", "EgoCNN", "EgoConv", "Output", "PatchySan", "Pool", "SortPool"]
