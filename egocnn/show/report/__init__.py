"""Critical structures -> one self-contained HTML page that works without a network."""

from egocnn.show.report.summary import Summary, sentences, summarise

__all__ = ["Summary", "sentences", "summarise"]
