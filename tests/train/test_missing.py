"""Training on parts: which nodes are missing follows from seed, epoch and number alone, and norms do not see them."""

import pytest
import torch

from egocnn.config import Readout, TrainConfig
from egocnn.nn.rows import PresentRows
from egocnn.train.engines.common import Member, present_in, present_nodes
from egocnn.train.engines.plain import run_batch
from tests.support.samples import sure
from tests.support.tiny import SIZES, alcohols, parts, plain_model, plain_train

SHOWN_IN_PART = plain_train(parts=0.5, missing=1.0)


def there(
    graph: torch.Tensor, node: torch.Tensor, config: TrainConfig, *, seed: int = 3, epoch: int = 1
) -> torch.Tensor:
    return present_nodes(torch.tensor(seed), torch.tensor(epoch), graph, node, config)


def test_half_of_the_graphs_are_whole_others_miss_half_their_nodes_and_every_epoch_draws_others() -> None:
    graph = torch.arange(2000).repeat_interleave(20)
    found = there(graph, torch.arange(len(graph)), SHOWN_IN_PART).view(2000, 20)
    whole = found.all(dim=1)
    assert abs(float(whole.float().mean()) - 0.525) < 0.03  # some parts miss nothing
    assert abs(float(found[~whole].float().mean()) - 0.48) < 0.03
    graph, node = torch.zeros(400, dtype=torch.int64) + 5, torch.arange(400)
    config = plain_train(parts=1.0)
    first = there(graph, node, config)
    assert torch.equal(first, there(graph, node, config))
    assert not torch.equal(first, there(graph, node, config, epoch=2))
    assert not torch.equal(first, there(graph, node, config, seed=4))


def test_what_is_missing_does_not_depend_on_the_batch() -> None:
    _, train, _ = parts(alcohols())
    together, alone = torch.arange(6), torch.tensor([4])
    all_six, one = (present_in(train, some, 1, 2, plain_train(parts=1.0)) for some in (together, alone))
    assert torch.equal(sure(all_six)[train.batch(together).graph_of == 4], sure(one))


@pytest.mark.parametrize("readout", ["mean+log+max", "sum+max", "sort"])
def test_a_step_learns_the_same_whether_missing_nodes_are_left_out_or_multiplied_by_zero(readout: Readout) -> None:
    model = plain_model(**SIZES, dropout=0.0, jump=True, count_inputs=True, pool_norm=True, readout=readout)
    config, found, rows = plain_train(parts=0.8), [], list[int]()
    for leaves_out in (True, False):
        network, train, _ = parts(alcohols(), model)
        network.convs[0].register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
        chosen, weight = torch.arange(len(train)), torch.linspace(-1, 1, 2 * len(train)).view(-1, 2)
        there = sure(present_in(train, chosen, 0, 3, config))
        if leaves_out:
            member = Member(network, train, train, 0)
            output, _ = run_batch(network, member, chosen, 3, config, torch.device("cpu"))
        else:
            output = network(train.batch(chosen), there.float()).output
        torch.autograd.backward((output * weight).sum())
        gradients = {name: parameter.grad for name, parameter in network.named_parameters()}
        found.append((output, gradients, dict(network.named_buffers())))
    assert rows == [len(there) if readout == "sort" else int(there.sum()), len(there)]
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def test_a_norm_in_training_learns_from_present_rows_alone() -> None:
    y, presence = torch.randn(7, 3), torch.tensor([1.0, 0, 1, 1, 0, 1, 1])
    ours, theirs = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    normed = PresentRows(presence).norm(y, ours)
    assert torch.equal(normed[presence > 0], theirs(y[presence > 0]))
    assert not normed[presence == 0].any()
    assert torch.equal(sure(ours.running_mean), sure(theirs.running_mean))
