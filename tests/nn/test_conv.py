from typing import Any

import pytest
import torch
from torch import Tensor

from egocnn.errors import ConfigError
from egocnn.nn import EgoConv
from egocnn.nn.engines import Neighbours, ego_conv_reference
from tests.support.networks import randomise

TABLE = torch.tensor([[1, 2, -1], [0, -1, -1], [3, 0, 1], [2, -1, -1], [-1, -1, -1]])


def inputs(N: int = 5, D: int = 3, seed: int = 1) -> Tensor:
    return torch.randn(N, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sums(x: Tensor, conv: EgoConv) -> Tensor:
    """b + sum over k of the k-th neighbour times its own filter matrix."""
    return ego_conv_reference(x, TABLE[:, : conv.k], conv.weight, conv.bias)


def test_the_layer_is_its_equation_and_in_training_its_norm_uses_the_statistics_of_the_batch() -> None:
    conv = EgoConv(3, 4, k=3).double().eval()
    randomise(conv)
    y = sums(inputs(), conv)
    norm: Any = conv.norm
    expected = (y - norm.running_mean) / torch.sqrt(norm.running_var + norm.eps) * norm.weight + norm.bias
    torch.testing.assert_close(conv(inputs(), TABLE), expected.clamp(min=0))
    conv = EgoConv(3, 4, k=3, activation=False).double().train()
    y = conv(inputs(), TABLE)
    torch.testing.assert_close(y.mean(0), torch.zeros(4, dtype=torch.float64), atol=1e-7, rtol=0)
    expected = sums(inputs(), conv)
    expected = (expected - expected.mean(0)) / torch.sqrt(expected.var(0, unbiased=False) + 1e-5)
    torch.testing.assert_close(y, expected)


@pytest.mark.parametrize("k", [0, 3])
def test_norm_and_activation_can_be_left_out(k: int) -> None:
    conv = EgoConv(3, 4, k=k, norm=False, activation=False).double()
    torch.testing.assert_close(conv(inputs(), TABLE), sums(inputs(), conv))
    assert (conv(inputs(), TABLE) < 0).any()


def test_filters_of_rank_one_are_a_graph_attention_layer_with_one_head() -> None:
    """W_k = alpha_k W: the layer then sums alpha_k h W over the neighbours, as a 1-head attention layer does."""
    alpha = torch.tensor([0.1, 0.5, 0.3, 0.1], dtype=torch.float64)  # attention of the node itself and its ranks
    matrix = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    conv = EgoConv(3, 4, k=3, norm=False).double()
    with torch.no_grad():
        conv.weight.copy_(alpha[:, None, None] * matrix)
    x, rows = inputs(), []
    for node in range(5):
        aggregated = torch.zeros(3, dtype=torch.float64)
        for attention, source in zip(alpha, [node, *TABLE[node].tolist()], strict=True):
            if source >= 0:
                aggregated = aggregated + attention * x[source]
        rows.append(aggregated @ matrix)
    torch.testing.assert_close(conv(x, TABLE), torch.stack(rows).clamp(min=0))


def test_a_layer_reads_its_own_ranks_of_a_wider_table_refuses_a_narrower_one_and_says_its_sizes() -> None:
    conv = EgoConv(3, 4, k=1).double().eval()
    expected = conv(inputs(), TABLE[:, :1])
    torch.testing.assert_close(conv(inputs(), TABLE), expected)
    torch.testing.assert_close(conv(inputs(), Neighbours.of(TABLE)), expected)
    with pytest.raises(ConfigError, match="the layer reads k=4 neighbours, the table has 3"):
        EgoConv(3, 4, k=4)(inputs().float(), TABLE)
    with pytest.raises(ConfigError, match="k must be at least 0, got -1"):
        EgoConv(3, 4, k=-1)
    assert "3, 4, k=2" in repr(EgoConv(3, 4, k=2))


@pytest.mark.parametrize("table", [TABLE.double(), TABLE > 0, TABLE.numpy(), TABLE[0], None])
def test_a_table_that_holds_no_numbers_of_nodes_is_refused(table: Any) -> None:
    """Floats and truth values were taken for numbers of nodes without a word."""
    with pytest.raises(ConfigError, match=r"neighbours must be a tensor \(N, K\) of whole numbers"):
        EgoConv(3, 4, k=1)(inputs().float(), table)


@pytest.mark.parametrize("x", [TABLE, inputs()[:, :2], inputs()[0], inputs().numpy(), None])
def test_what_is_no_embedding_is_refused_with_its_width(x: Any) -> None:
    with pytest.raises(ConfigError, match=r"x must be a tensor \(N, 4\) of floating-point numbers"):
        EgoConv(4, 2, k=1)(x, TABLE)


@pytest.mark.parametrize("widths", [(0, 4), (4, -1), (2.5, 4), (None, 4), (4, "4")])
def test_widths_are_whole_numbers_above_zero(widths: tuple[Any, Any]) -> None:
    with pytest.raises(ConfigError, match="width must be"):
        EgoConv(*widths, k=1)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_layers_on_top_of_each_other_read_one_hop_more_each(depth: int) -> None:
    chain = torch.tensor([[1, -1], [0, 2], [1, 3], [2, 4], [3, 5], [4, -1]])
    x = inputs(N=6).requires_grad_()
    h = x
    for seed in range(depth):
        conv = EgoConv(3, 3, k=2, norm=False, activation=False).double()
        randomise(conv, seed)
        h = conv(h, chain)
    (gradient,) = torch.autograd.grad(h[0].sum(), x)
    assert torch.nonzero(gradient.abs().sum(1)).flatten().tolist() == list(range(depth + 1))


def test_fresh_filters_keep_the_size_of_the_signal() -> None:
    torch.manual_seed(0)
    x = torch.randn(400, 64)
    table = torch.randint(0, 400, (400, 16))
    table[:, 3:] = -1
    y = EgoConv(64, 64, k=16, norm=False, activation=False)(x, table).detach()
    assert 0.5 < y.std().item() / x.std().item() < 2.5


def test_a_layer_that_shares_learns_with_the_other_but_counts_its_own_statistics() -> None:
    one, other = EgoConv(3, 3, k=3), EgoConv(3, 3, k=3)
    other.share(one)
    assert {id(p) for p in other.parameters()} == {id(p) for p in one.parameters()}
    one(inputs().float(), TABLE)
    assert not torch.allclose(one.get_buffer("norm.running_mean"), other.get_buffer("norm.running_mean"))
