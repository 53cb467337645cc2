"""What a model says about graphs that are unlike those it was trained on."""

import logging

import pytest

from egocnn.config import ModelConfig
from egocnn.data.graphs import Graphs
from egocnn.data.sources.smiles import from_smiles
from egocnn.encode.encoder import Encoder
from egocnn.encode.familiar import check_familiar, familiar
from egocnn.errors import DataError
from tests.support.samples import one_graph

CHAIN = [(0, 1), (1, 2)]


def chain(*nodes: str, edge: str = "single", attr: float | None = None) -> Graphs:
    more = {} if attr is None else {"node_attr": [[attr], [0.0], [1.0]]}
    return one_graph(3, CHAIN, node_label=list(nodes), edge_label=[edge, edge], **more)


def encoder(*portions: Graphs) -> Encoder:
    return Encoder.fit(Graphs.concat(portions), ModelConfig())


def test_graphs_without_any_label_of_the_training_graphs_are_refused_before_they_are_handed_on() -> None:
    trained = encoder(chain("0", "1", "0", edge="0"))
    with pytest.raises(DataError, match=r"knows no label of these 1 graphs: .* labelled C, O, those .* on 0, 1$"):
        next(familiar(trained, chain("C|H3", "C|H2", "O")))


def test_graphs_with_some_unknown_labels_are_counted_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    trained = encoder(chain("C", "C", "O"))
    with caplog.at_level(logging.WARNING, "egocnn"):
        check_familiar(trained, Graphs.concat([chain("C", "C", "Xe|ring"), chain("O", "C", "C", edge="odd")]))
    assert caplog.messages == [
        "1 of 2 graphs have node labels that the model was not trained on (Xe)",
        "1 of 2 graphs have edge labels that the model was not trained on (odd)",
    ]


def test_of_molecules_atoms_and_bonds_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    trained = Encoder.fit(from_smiles(["CC", "CO"]), ModelConfig())
    with caplog.at_level(logging.WARNING, "egocnn"):
        check_familiar(trained, from_smiles(["CC", "CCBr", "C=O"]))
    assert caplog.messages == [
        "1 of 3 molecules have atoms that the model was not trained on (Br)",
        "1 of 3 molecules have bonds that the model was not trained on (double)",
    ]


def test_a_new_further_word_is_no_unknown_label(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "egocnn"):
        check_familiar(encoder(chain("C|H3", "C", "O")), chain("C|H1", "C|R", "O|H1"))
    assert not caplog.messages


def test_attributes_far_from_those_of_the_training_graphs_are_told(caplog: pytest.LogCaptureFixture) -> None:
    trained = encoder(*(chain("C", "C", "O", attr=x) for x in (0.0, 0.5, 1.0)))
    with caplog.at_level(logging.WARNING, "egocnn"):
        check_familiar(trained, Graphs.concat([chain("C", "C", "O", attr=x) for x in (0.7, 500.0)]))
    (line,) = caplog.messages
    assert line.startswith("1 of 2 graphs have attributes more than 10 standard deviations")


def test_degrees_in_place_of_labels_are_never_refused() -> None:
    ring = one_graph(3, [*CHAIN, (0, 2)])
    star = one_graph(9, [(0, n) for n in range(1, 9)])
    assert check_familiar(encoder(ring), star) is star


def test_a_store_is_refused_only_once_every_portion_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    class InPortions:
        def __len__(self) -> int:
            return 2

        def portions(self) -> list[Graphs]:
            return [chain("Xe", "Xe", "Xe", edge="odd"), chain("C", "C", "O")]

    trained, given = encoder(chain("C", "C", "O")), InPortions()
    with caplog.at_level(logging.WARNING, "egocnn"):
        assert len(list(familiar(trained, given))) == 2  # type: ignore[arg-type]
    assert caplog.messages[0].startswith("1 of 2 graphs have node labels")
