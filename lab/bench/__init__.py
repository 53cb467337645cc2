"""Speed beside named peers, measured in one run: a benchmark's name -> a record of times, memory, ratios and floors."""

from lab.bench.chart import chart, draw_chart
from lab.bench.document import fill_document, markdown, read_records
from lab.bench.run import BENCHMARKS, bench, default_file

__all__ = ["BENCHMARKS", "bench", "chart", "default_file", "draw_chart", "fill_document", "markdown", "read_records"]
