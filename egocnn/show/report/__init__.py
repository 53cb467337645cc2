"""Critical structures -> one self-contained HTML page that works without a network."""

from egocnn.show.report.page import write_report
from egocnn.show.report.summary import Summary, sentences, summarise

__all__ = ["Summary", "sentences", "summarise", "write_report"]
