"""Graphs larger than memory: a folder of plain arrays, written and read in portions, every byte of it checked.

The layout is described in :mod:`egocnn.store.manifest`.
"""

from egocnn.store.portions import choose_portions, cut
from egocnn.store.read import Store, is_store
from egocnn.store.sources import Source, stream_source
from egocnn.store.stored import Stored
from egocnn.store.write import write_store

__all__ = ["Source", "Store", "Stored", "choose_portions", "cut", "is_store", "stream_source", "write_store"]
