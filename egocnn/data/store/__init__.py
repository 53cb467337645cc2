"""Graphs larger than memory: a folder of plain arrays, written and read in portions, every byte of it checked."""

from egocnn.data.store.read import Store, Stored, is_store
from egocnn.data.store.write import GraphColumns, write_store

__all__ = ["GraphColumns", "Store", "Stored", "is_store", "write_store"]
