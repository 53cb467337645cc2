import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from egocnn.data.graphs import Graphs
from egocnn.encode.encoder import Encoder
from egocnn.errors import DataError
from egocnn.nn import predict as predicting
from egocnn.nn.predict import portions
from egocnn.train.engines.common import Progress, rate
from egocnn.train.engines.recorded.engine import RecordedEngine
from egocnn.train.loop import EngineName
from egocnn.train.metrics import evaluate, loss_and_score, loss_of
from egocnn.train.recipe import learn
from tests.support.samples import one_graph, sure
from tests.support.tiny import MODEL, SIZES, TRAIN, alcohols, fit, oxygens, parts, plain_model, plain_train, same, state

# ── one seed, one result ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("changes", [{}, {"tie": True}, {"readout": "sort", "sort_nodes": 4}])
def test_the_same_seed_gives_the_same_weights_bit_by_bit(changes: dict[str, object]) -> None:
    model = plain_model(**(SIZES | changes))
    first, second, other = (
        learn(alcohols(), model, replace(TRAIN, seed=seed))[0].networks[0].state_dict() for seed in (3, 3, 4)
    )
    assert same(first, second)
    assert not same(first, other)


def test_the_first_weights_follow_from_the_seed_and_random_states_outside_do_not_matter_nor_change() -> None:
    still = plain_train(epochs=1, learning_rate=1e-12)
    one, other = (learn(alcohols(), MODEL, replace(still, seed=seed))[0].networks[0].hidden.weight for seed in (0, 1))
    assert not torch.allclose(one, other, atol=0.1)
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    learn(alcohols(), MODEL, TRAIN)
    after = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    np.testing.assert_equal(before[1], after[1])
    assert before[2] == after[2]
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        results.append(learn(alcohols(), MODEL, TRAIN)[0].networks[0].state_dict())
    assert same(*results)


# ── learning ──────────────────────────────────────────────────────────────────────────────────────


def test_a_regressor_learns_to_count_and_answers_in_the_unit_of_the_target() -> None:
    graphs, unseen = oxygens(300)[:250], oxygens(300)[250:]
    model = plain_model(**(SIZES | {"width": 16, "hidden": 16}), readout="sum", dropout=0.0)
    predictor, history = learn(graphs, model, plain_train(epochs=30, patience=30, learning_rate=1e-2))
    assert sure(history.best).validation_score > 0.9
    values = predictor.values(unseen)
    assert unseen.target is not None
    rest = np.square(values - unseen.target).sum() / np.square(unseen.target - unseen.target.mean()).sum()
    assert 1 - rest > 0.9
    assert 4800 < values.min() < values.max() < 6200


@pytest.mark.parametrize("class_weights", [False, True])
def test_class_weights_make_a_rare_class_count_as_much_as_a_common_one(class_weights: bool) -> None:
    """Where all graphs look the same, what is learned is how common the classes are, or how common they count."""
    graphs = Graphs.concat([one_graph(3, [(0, 1), (1, 2)])] * 40)
    graphs = graphs.replace(target=np.array([1] * 4 + [0] * 36), class_names=("common", "rare"))
    config = plain_train(epochs=30, patience=30, learning_rate=3e-2, validation=0.5, class_weights=class_weights)
    predictor, _ = learn(graphs, plain_model(**SIZES, dropout=0.0), config)
    assert predictor.probabilities(graphs[:1])[0, 1] == pytest.approx(0.5 if class_weights else 0.1, abs=0.1)


def test_weights_enter_the_loss_as_shares() -> None:
    outputs = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    target = torch.tensor([0, 1, 1])
    each = [math.log(1 + math.exp(-2)), math.log(1 + math.exp(-1)), math.log(1 + math.exp(0.5))]
    assert float(loss_of(outputs, target)) == pytest.approx(sum(each) / 3)
    weighted = float(loss_of(outputs, target, torch.tensor([3.0, 1.0])))
    assert weighted == pytest.approx((3 * each[0] + each[1] + each[2]) / 5)


ATOMS: dict[str, Any] = {"node_label": np.arange(10, dtype=np.int32) % 2, "node_label_names": ("C", "O")}


@pytest.mark.parametrize(
    ("counts", "labels", "batch_size", "stack"),
    [([1] * 10, ATOMS, 1, False), ([1] * 10, ATOMS, 3, False), ([0, 2] * 5, {}, 1, False), ([0, 2] * 5, {}, 1, True)],
)
def test_graphs_of_a_single_node_or_of_none_train_even_one_at_a_time(
    counts: list[int], labels: dict[str, Any], batch_size: int, stack: bool
) -> None:
    target, nothing = np.arange(10) % 2, np.zeros((0, 2), np.int64)
    graphs = Graphs.from_edges(node_counts=counts, edges=nothing, target=target, class_names=("no", "yes"), **labels)
    predictor, history = learn(graphs, MODEL, replace(TRAIN, batch_size=batch_size), stack=stack)
    assert all(math.isfinite(e.train_loss) for e in history.epochs)
    assert np.isfinite(predictor.probabilities(graphs)).all()


# ── the learning rate ─────────────────────────────────────────────────────────────────────────────


def test_the_learning_rate_rises_shortly_and_then_falls_to_zero_and_the_history_tells_it() -> None:
    config = plain_train()
    shares = [rate(done, config) for done in np.linspace(0, 1, 201).tolist()]
    peak = int(np.argmax(shares))
    assert 0 < shares[0] < 0.1
    assert 0.02 < peak / 200 < 0.1
    assert 0.95 < shares[peak] <= 1
    assert (np.diff(shares[: peak + 1]) > 0).all()
    assert (np.diff(shares[peak:]) < 0).all()
    assert shares[-1] == pytest.approx(0, abs=1e-9)
    assert shares[100] == pytest.approx(0.5)
    for schedule in ("cosine", "constant"):
        network, train, validation = parts(alcohols())
        config = plain_train(epochs=10, patience=10, learning_rate=0.02, schedule=schedule, batch_size=len(train))
        history = fit(network, train, validation, config)
        assert [e.learning_rate for e in history.epochs] == pytest.approx(
            [0.02 * rate(e / 10, config) for e in range(10)]
        )
    assert {e.learning_rate for e in history.epochs} == {0.02}


# ── when things go wrong ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("engine", ["plain", "recorded"])
@pytest.mark.parametrize("in_the_middle", [False, True])
def test_ctrl_c_leaves_the_best_weights_so_far_and_forgets_an_epoch_that_has_not_ended(
    in_the_middle: bool, engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, train, validation = parts(alcohols())
    after_epoch = []

    def keep(several: Sequence[Progress]) -> None:
        after_epoch.append(state(network))
        if len(several[0].history.epochs) < 3:
            return
        if not in_the_middle:
            raise KeyboardInterrupt
        several[0].optimizer.register_step_pre_hook(interrupt)
        monkeypatch.setattr(RecordedEngine, "_scores", interrupt)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    history = fit(network, train, validation, replace(TRAIN, epochs=50), engine=engine, keep=keep)
    assert history.interrupted
    assert len(history.epochs) == 3
    assert same(state(network), after_epoch[sure(history.best).epoch - 1])
    assert not network.training


@pytest.mark.parametrize("stack", [False, True])
def test_a_loss_that_is_never_finite_is_one_clear_error(stack: bool) -> None:
    with pytest.raises(DataError, match="training diverged: no epoch gave a finite loss; try a smaller"):
        learn(alcohols(), MODEL, plain_train(epochs=3, learning_rate=1e30), stack=stack)


def test_graphs_without_targets_cannot_be_scored() -> None:
    network, _, _ = parts(alcohols())
    encoder = Encoder.fit(alcohols(), MODEL)
    with pytest.raises(DataError, match="no target to compare with"):
        evaluate(network, encoder.apply(alcohols().replace(target=None, class_names=()), MODEL))


# ── scores and portions ───────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_scores_over_batches_are_those_of_all_at_once(sizes: list[int]) -> None:
    random = torch.Generator().manual_seed(sum(sizes))
    outputs, values = (torch.randn(sum(sizes), 1, generator=random).double() for _ in range(2))
    for out, target in ((outputs, values[:, 0]), (torch.cat([outputs, -outputs], 1), (values[:, 0] > 0).long())):
        pairs = zip(torch.split(out, sizes), torch.split(target, sizes), strict=True)
        apart = loss_and_score([(*pair, loss_of(*pair)) for pair in pairs])
        assert apart == pytest.approx(loss_and_score([(out, target, loss_of(out, target))]))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 12))
def test_portions_hold_every_graph_once_in_order_and_few_nodes(counts: list[int], at_once: int) -> None:
    graphs = Graphs.from_edges(node_counts=[*counts, 1], edges=np.zeros((0, 2), np.int64))
    data = Encoder.fit(graphs, MODEL).apply(graphs, MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predicting, "NODES_AT_ONCE", at_once)
        chosen = list(portions(data))
    assert torch.cat(chosen).tolist() == list(range(len(graphs)))
    assert all(sum(graphs.node_counts[portion.numpy()]) <= at_once + max(counts, default=1) for portion in chosen)
