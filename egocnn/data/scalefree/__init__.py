"""Graphs -> do their degrees follow a power law, and should the layers of an Ego-CNN share their filters?"""

from egocnn.data.scalefree.bootstrap import goodness
from egocnn.data.scalefree.fit import Counts, PowerLaw, fit_power_law
from egocnn.data.scalefree.judge import Judgement, decide_by, judge, judge_counts
from egocnn.data.scalefree.plot import check_plot, draw_degrees
from egocnn.data.scalefree.report import assess, lines
from egocnn.data.scalefree.rivals import Comparison

__all__ = [
    "Comparison",
    "Counts",
    "Judgement",
    "PowerLaw",
    "assess",
    "check_plot",
    "decide_by",
    "draw_degrees",
    "fit_power_law",
    "goodness",
    "judge",
    "judge_counts",
    "lines",
]
