"""Labels of several words."""

import numpy as np
import torch

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.encode.words import columns, first_words, further_words, heads, told_apart
from egocnn.model import Model
from tests.support.samples import as_list, one_graph

CHAIN = [(0, 1), (1, 2)]


def chain(*nodes: str, edges: tuple[str, str] = ("single", "single|ring5")) -> Graphs:
    return one_graph(3, CHAIN, node_label=list(nodes), edge_label=list(edges))


def test_a_label_is_split_into_its_first_word_and_further_ones() -> None:
    names = ("C", "C|H3", "O|H1|R", "N|")
    assert heads(names) == ("C", "O", "N")
    assert further_words(names) == ("", "H1", "H3", "R")
    label = np.array([1, 2, 0, -1])
    first, second, third = columns(label, names, ("C", "O"), ("H1", "H3"))
    assert (as_list(first), as_list(second), as_list(third)) == ([0, 1, 0, -1], [3, 2, -1, -1], [-1, -1, -1, -1])
    assert columns(None, names, ("C",), ()) == columns(label, names, (), ()) == []


def test_what_ranks_and_counts_are_first_words_and_labels_of_one_word_stay_as_they_are() -> None:
    graphs = chain("C|H3", "C", "O|H1")
    plain = first_words(graphs)
    assert plain.node_label_names == ("C", "O")
    assert plain.edge_label_names == ("single",)
    assert first_words(plain) is plain
    encoder = Encoder.fit(graphs, ModelConfig())
    assert (encoder.node_words, encoder.edge_words) == (("H1", "H3"), ("ring5",))
    assert as_list(encoder.renamed(graphs).node_label) == as_list(plain.node_label)


def test_a_combination_that_was_never_seen_is_read_by_the_words_that_were() -> None:
    config, new = ModelConfig(), chain("C|H1", "C|X9", "O|H3")
    encoder = Encoder.fit(chain("C|H3", "C", "O|H1"), config)
    nodes = encoder.words(new).nodes
    assert [as_list(word) for word in nodes] == [[0, 0, 1], [2, -1, 3]]
    assert as_list(told_apart(nodes)) == [1, 0, 2]
    assert told_apart([]) is None


def test_further_words_change_nothing_until_they_have_been_learned() -> None:
    config, plain, worded = ModelConfig(width=8), chain("C", "C", "O"), chain("C|H3", "C", "O|H1")
    outputs = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = Model.build(config, Encoder.fit(worded, config))
        network = model.networks[0].eval()
        outputs.append([network(model.encode(graphs).batch(torch.arange(1))).output for graphs in (plain, worded)])
        assert torch.equal(*outputs[-1])
        with torch.no_grad():
            next(iter(network.embed.parameters())).add_(0.5)
        assert not torch.equal(outputs[-1][1], network(model.encode(worded).batch(torch.arange(1))).output)
    assert not torch.equal(outputs[0][0], outputs[1][0])
