"""Large graphs where they live: flat tensors of a collection on any device -> the ranked neighbours of every node.

Each module here is the counterpart, in torch, of the module of the package that bears its name, and gives the same
numbers bit for bit. Nothing is copied between devices, and beyond what goes in and what comes out only a few numbers
a node and one portion of the adjacency are held at a time: a graph of ten million nodes and a hundred million edges
is ranked beside its features.
"""

from __future__ import annotations

from egocnn.encode.on_device.colours import stable_colours, wl_rounds
from egocnn.encode.on_device.graphs import ResidentGraphs
from egocnn.encode.on_device.ranking import Order, count_colours, order_nodes, rank_neighbours

__all__ = [
    "Order",
    "ResidentGraphs",
    "count_colours",
    "order_nodes",
    "rank_neighbours",
    "stable_colours",
    "wl_rounds",
]
