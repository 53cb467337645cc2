"""A name, a folder or a zip of the TU Dortmund collection -> Graphs: looked for here, downloaded, checked and read."""

from egocnn.data.sources.tu.download import fetch_set
from egocnn.data.sources.tu.reader import read_tu

__all__ = ["fetch_set", "read_tu"]
