"""Graphs -> do their degrees follow a power law, and should the layers of an Ego-CNN share their filters?"""

from egocnn.data.scalefree.judge import Judgement, assess, decide_by, judge, judge_counts, lines
from egocnn.data.scalefree.plot import check_plot, draw_degrees
from egocnn.data.scalefree.power_law import Comparison, Counts, PowerLaw, fit_power_law, goodness

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
