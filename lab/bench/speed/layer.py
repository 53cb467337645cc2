"""One ego-convolution beside its peers: forward, and forward with the gradients of inputs and weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from egocnn.nn.engines import Neighbours, ego_conv, ego_conv_reference
from lab.bench.tools.ceilings import Ceilings, CeilingSizes, Precision, arithmetic, dtype_of, measure_ceilings
from lab.bench.tools.peers import GAT, GIN, PNA, Peer
from lab.bench.tools.problems import Density, degree_histogram, edge_list, neighbour_table, with_loops
from lab.bench.tools.systems import OURS, BenchSettings, TimedCase, TimedSystem, measure_systems
from lab.bench.tools.timing import Work, input_sets

Passes = Literal["forward", "forward + backward"]
Function: TypeAlias = Callable[..., Tensor]  # x, neighbours, weight, bias -> the ego-convolution

REFERENCE, COMPILED = "gather + matrix product", "the same under torch.compile"
WORDS: dict[Density, str] = {"full": "all neighbours present", "molecules": "as few neighbours as in molecules"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSizes:
    nodes: int
    k: int = 16
    width: int = 128
    graphs: Sequence[tuple[Density, Precision]]
    compiled: bool = True  # torch.compile among the peers: to compile takes much longer than to run
    ceilings: CeilingSizes | None = None


GPU = LayerSizes(
    nodes=1_000_000,
    graphs=(("full", "bfloat16"), ("molecules", "bfloat16"), ("full", "tf32")),
)
CPU = LayerSizes(nodes=50_000, graphs=(("full", "float32"), ("molecules", "float32")))
QUICK = LayerSizes(nodes=4_000, graphs=CPU.graphs)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerProblem:
    """One layer on one random graph; every system makes it anew from the seed."""

    nodes: int
    k: int
    width: int
    density: Density
    precision: Precision
    setting: BenchSettings

    def table(self, number: int = 0) -> Tensor:
        return neighbour_table(self.nodes, self.k, self.density, self.setting.generator(number))

    def random(self, *shape: int, number: int = 0, scale: float = 1.0) -> Tensor:
        generator = self.setting.generator(number)
        values = torch.randn(*shape, device=self.setting.device, generator=generator) * scale
        return values.to(dtype_of(self.precision))

    @property
    def read(self) -> int:
        """Embeddings read for all nodes: of every node itself and of its present neighbours."""
        return self.nodes + int((self.table() >= 0).sum())

    @property
    def embedding_bytes(self) -> int:
        return self.nodes * self.width * dtype_of(self.precision).itemsize

    @property
    def sets(self) -> int:
        return input_sets(self.setting.device, self.embedding_bytes)

    @property
    def parts(self) -> list[tuple[float, float]]:
        """Operations and least bytes of the forward pass, then of the backward pass.

        Forward reads x and the table and writes y; backward reads x, the gradient of y and the table again, and
        writes the gradient of x. Weights are too small to count.
        """
        operations, table = 2.0 * self.read * self.width**2, 4.0 * self.nodes * self.k
        return [(operations, 2 * self.embedding_bytes + table), (2 * operations, 3 * self.embedding_bytes + table)]


def bench_layer(setting: BenchSettings, sizes: LayerSizes | None = None) -> dict[str, Any]:
    sizes = sizes or (QUICK if setting.quick else GPU if setting.device.type == "cuda" else CPU)
    precisions = tuple(dict.fromkeys(precision for _, precision in sizes.graphs))
    ceilings = measure_ceilings(setting, precisions, sizes.ceilings)
    cases = []
    for density, precision in sizes.graphs:
        problem = LayerProblem(
            nodes=sizes.nodes, k=sizes.k, width=sizes.width, density=density, precision=precision, setting=setting
        )
        cases += [case.to_plain() for case in _cases(problem, ceilings, compiled=sizes.compiled)]
    return {"ceilings": ceilings.to_plain(), "cases": cases}


def _cases(problem: LayerProblem, ceilings: Ceilings, *, compiled: bool) -> Iterator[TimedCase]:
    shape = {
        "nodes": problem.nodes,
        "k": problem.k,
        "width": problem.width,
        "present_neighbours": round(problem.read / problem.nodes - 1, 3),
        "precision": problem.precision,
        "input_sets": problem.sets,
    }
    title = f"{WORDS[problem.density]}, {problem.precision}"
    passes: tuple[Passes, ...] = ("forward", "forward + backward")
    for number, which in enumerate(passes, 1):
        problem.setting.say(f"{title}, {which}")
        parts = problem.parts[:number]
        with arithmetic(problem.precision):
            found = measure_systems(_systems(problem, which, compiled=compiled), problem.setting)
        yield TimedCase(
            name=f"{title}, {which}",
            shape=shape | {"passes": which},
            measurements=found,
            floor=ceilings.floor(parts, problem.precision),
            operations=sum(operations for operations, _ in parts),
        )
        system = TimedSystem(name=OURS, build=partial(planning, problem, which))
        yield TimedCase(
            name=f"{title}, planning for {which} (once for all layers)",
            shape=shape | {"passes": f"planning for {which}"},
            measurements=measure_systems([system], problem.setting),
        )


def _systems(problem: LayerProblem, passes: Passes, *, compiled: bool) -> list[TimedSystem]:
    systems = [
        TimedSystem(name=OURS, build=partial(ours, problem, passes)),
        TimedSystem(name=REFERENCE, build=partial(reference, problem, passes, ego_conv_reference)),
    ]
    if compiled:
        systems.append(TimedSystem(name=COMPILED, build=partial(_compiled, problem, passes)))
    return systems + [
        TimedSystem(name=peer.name, build=partial(peer_layer, problem, passes, peer), same_function=False)
        for peer in (GIN, GAT, PNA)
    ]


def ours(problem: LayerProblem, passes: Passes) -> list[Work]:
    return _calls(problem, passes, ego_conv, lambda number: plan(problem.table(number), passes))


def plan(table: Tensor, passes: Passes) -> Neighbours:
    with torch.set_grad_enabled(passes != "forward"):  # without gradients, nothing is planned for them
        return Neighbours.of(table)


def reference(problem: LayerProblem, passes: Passes, function: Function) -> list[Work]:
    """It is given the 64-bit table that its indexing needs: converting would be no fault of the method."""
    return _calls(problem, passes, function, lambda number: problem.table(number).long())


def _compiled(problem: LayerProblem, passes: Passes) -> list[Work]:
    torch.compiler.reset()  # a limit on recompilations would make later shapes run uncompiled
    function: Function = torch.compile(ego_conv_reference, dynamic=False)
    return reference(problem, passes, function)


def planning(problem: LayerProblem, passes: Passes) -> list[Work]:
    return [partial(plan, problem.table(number), passes) for number in range(problem.sets)]


def peer_layer(problem: LayerProblem, passes: Passes, peer: Peer) -> list[Work]:
    works = []
    for number in range(problem.sets):
        edges = edge_list(problem.table(number))
        degrees = degree_histogram(edges, problem.nodes)
        if not peer.reads_itself:
            edges = with_loops(edges, problem.nodes)
        torch.manual_seed(problem.setting.seed)
        layer = peer.layer(problem.width, degrees).to(problem.setting.device, dtype_of(problem.precision))
        x = problem.random(problem.nodes, problem.width, number=number)
        call = partial(layer, edge_index=edges)
        works.append(_work(call, x, list(layer.parameters()), problem, passes))
    return works


def _calls(
    problem: LayerProblem, passes: Passes, function: Function, neighbours: Callable[[int], object]
) -> list[Work]:
    works = []
    for number in range(problem.sets):
        width, k = problem.width, problem.k
        x = problem.random(problem.nodes, width, number=number)
        weight = problem.random(k + 1, width, width, number=number + 100, scale=1 / math.sqrt((k + 1) * width))
        bias = problem.random(width, number=number + 200)
        call = partial(function, neighbours=neighbours(number), weight=weight, bias=bias)
        works.append(_work(call, x, [weight, bias], problem, passes))
    return works


def _work(
    call: Callable[[Tensor], Tensor], x: Tensor, weights: Sequence[Tensor], problem: LayerProblem, passes: Passes
) -> Work:
    if passes == "forward":

        @torch.no_grad()
        def forward() -> object:
            return call(x)

        return forward
    wanted = [x.requires_grad_(), *(weight.requires_grad_() for weight in weights)]
    arriving = problem.random(problem.nodes, problem.width, number=300)
    return lambda: torch.autograd.grad(call(x), wanted, arriving)
