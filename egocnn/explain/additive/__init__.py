r"""Contributions that add up: base + the sum over a graph's nodes = the output that is explained.

**How much** speaks for the output and how much against it follows from the gradient of the output with respect to the
presence of the nodes, averaged on the way from the empty graph to the whole one (integrated gradients, Sundararajan et
al., 2017; Gauss-Legendre points):

.. math:: g_n = \int_0^1 \frac{\partial y}{\partial \pi_n}(\alpha, \ldots, \alpha) \, d\alpha, \qquad
          \sum_n g_n \approx y(1) - y(0)

Where a class is explained, the R networks of a model divide the points among themselves, which points as well as asking
all of them everywhere and takes a third of the time; a value, whose contributions are to be right in size, asks all.
What is left of the difference between both sides joins the side that it favours: few points see little of kinks, and a
mean over present nodes, which does not fade with their presence, jumps where the last of them goes.

**Where** it stands is seen in three ways, each divided by its size: g; the evidence e that a node holds where it is
read out (:mod:`egocnn.explain.evidence`); and the relevance r of :mod:`egocnn.explain.backtrack`, which follows the
units that decided down to the input and knows nothing of graphs half present:

.. math:: w_n = \frac{g_n}{\sum |g|} + \frac{e_n}{2 \sum |e|} + \rho \frac{r_n}{\sum |r|}

A value is a sum over the nodes, which g and e show as it is: :math:`\rho = 1/4` and v = w. A class stands for a
pattern, which relevance traces best, :math:`\rho = 1`, and a unit of the network reads whole neighbourhoods: a node
takes a quarter from what its neighbours hold on average. Short cycles are patterns as a whole
(:mod:`egocnn.explain.additive.cycles`): a node on cycles c takes half from their mean:

.. math:: u_n = \frac{3}{4} w_n + \frac{1}{4 |N(n)|} \sum_{m \in N(n)} w_m, \qquad
          v_n = \frac{1}{2} u_n + \frac{1}{2} \operatorname{mean}_{c \ni n} \operatorname{mean}_{m \in c} u_m

**Both together**: positive contributions share the sum of the positive g in proportion to v, negative ones that of the
negative g:

.. math:: c_n = \frac{[v_n]_+}{\sum [v]_+} \sum [g]_+ - \frac{[v_n]_-}{\sum [v]_-} \sum [g]_-

The edges are a second view of the same total: every node hands its contribution to its edges in equal parts. A node
without edges has none to hand it to."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from egocnn.data.arrays import Floats
from egocnn.data.graphs import Graphs
from egocnn.explain.additive.cycles import Cycles
from egocnn.explain.question import Question

READ_OUT = 0.5  # Weight of the evidence where it is read out beside that of the gradients, which is 1.
RELEVANCE_OF_CLASS, RELEVANCE_OF_VALUE = 1.0, 0.25  # The same of relevance.
BLUR = 0.25  # For a class, the share of what stands around a node in what it counts itself.
ON_CYCLES = 0.5
"""For a class, the share of the mean of its cycles in what a node on cycles counts. Three quarters score as well; with
a half, the atom of a ring that matters can still be told from the others.

All of them were chosen on the choosing half of the truths: ``results/truths_rules.json``."""


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """Where the evidence stands, (N) each."""

    gradients: Floats  # integrated over presence
    read_out: Floats  # what a node holds in the layers that are read out
    relevance: Floats  # the same, traced back to the input

    def together(self, graphs: Graphs, *, of_class: bool) -> Floats:
        """(N) the weighted sum of the views, each divided by its size; of a class also with what stands around"""
        g, e, r = (normed(graphs, view) for view in (self.gradients, self.read_out, self.relevance))
        together: Floats = g + READ_OUT * e + (RELEVANCE_OF_CLASS if of_class else RELEVANCE_OF_VALUE) * r
        return Cycles.of(graphs).share(blurred(graphs, together, BLUR), ON_CYCLES) if of_class else together


def integrated_gradients(question: Question, steps: int, *, divided: bool) -> Tensor:
    """(N) the slope in every node's presence, averaged from the empty graph to the whole one. ``divided``: the networks
    divide the points among themselves instead of all being asked at every point."""
    networks, total = question.networks, question.batch.attributes.new_zeros(len(question.batch.place))
    for number, (point, weight) in enumerate(zip(*np.polynomial.legendre.leggauss(steps), strict=True)):
        asked = networks[number % len(networks) :: steps] if divided else networks
        total += weight / 2 * replace(question, networks=asked).slope(torch.full_like(total, (point + 1) / 2))
    return total


def contributions(graphs: Graphs, gradients: Floats, place: Floats, difference: Floats) -> Floats:
    """How much (N), where (N) and output less base (B) -> contributions (N) that add up to it"""
    gap = difference - _total(graphs, gradients)
    amount, room = {}, {}
    for sign in (1.0, -1.0):
        amount[sign] = _total(graphs, np.maximum(sign * gradients, 0)) + np.maximum(sign * gap, 0)
        room[sign] = _total(graphs, np.maximum(sign * place, 0)) > 0
    found = np.zeros_like(place)
    for sign in (1.0, -1.0):
        # where no node is found to speak against it, what does lowers what speaks for it
        taken_off = ~room[-sign] & (amount[-sign] <= amount[sign])
        given_up = ~room[sign] & (amount[sign] <= amount[-sign])
        left = np.where(given_up, 0, amount[sign] - np.where(taken_off, amount[-sign], 0))
        # each in proportion to the first of these numbers that its graph has; else in equal parts
        shares = np.ones_like(place)
        for numbers in (np.maximum(sign * gradients, 0), np.maximum(sign * place, 0)):
            shares = np.where((_total(graphs, numbers) > 0)[graphs.graph_of], numbers, shares)
        found += sign * (left[graphs.graph_of] * shares / _total(graphs, shares)[graphs.graph_of])
    return found


def _total(graphs: Graphs, values: Floats) -> Floats:
    """(N) -> (B) the sums over the nodes of every graph"""
    total: Floats = np.bincount(graphs.graph_of, weights=values, minlength=len(graphs)).astype(np.float64)
    return total


def normed(graphs: Graphs, values: Floats) -> Floats:
    """(N) divided by what their sizes come to in their graph"""
    size = _total(graphs, np.abs(values))
    return values / np.where(size > 0, size, 1)[graphs.graph_of]


def blurred(graphs: Graphs, values: Floats, share: float) -> Floats:
    """(N) every node's value with a share of the mean of its neighbours'"""
    degree = np.diff(graphs.indptr)
    around = np.bincount(graphs.entry_node, weights=values[graphs.indices], minlength=graphs.n_nodes)
    return np.where(degree > 0, (1 - share) * values + share * around / np.maximum(degree, 1), values)


def handed_to_edges(graphs: Graphs, nodes: Floats) -> Floats:
    """Contributions of nodes (N) -> of edges (E), in the order of ``graphs.edges``"""
    low, high = graphs.edges.T
    degree = np.bincount(low, minlength=graphs.n_nodes) + np.bincount(high, minlength=graphs.n_nodes)
    apiece = nodes / np.maximum(degree, 1)
    both: Floats = apiece[low] + apiece[high]
    return both
