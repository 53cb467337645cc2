"""Social networks without any labels: which people make it say "closed circle"?

Half of the networks grow by preferential attachment alone; in the other half, six
people all know each other.
"""

from __future__ import annotations

import random
from itertools import combinations

import networkx as nx

import egocnn


def network(seed: int, *, circle: bool) -> nx.Graph:
    graph = nx.barabasi_albert_graph(30 + seed % 20, 2, seed=seed)
    friends = random.Random(seed).sample(range(10, 30), 6)  # who came late, know few
    if circle:
        graph.add_edges_from(combinations(friends, 2))
    graph.graph |= {"name": f"network-{seed}", "friends": friends}
    graph.graph["target"] = "circle" if circle else "none"
    return graph


networks = [network(seed, circle=seed % 2 == 1) for seed in range(120)]
train, test = egocnn.read(networks[:90]), egocnn.read(networks[90:])
model = egocnn.EgoCNNClassifier(
    width=16, depth=2, epochs=20, degrees=True, learning_rate=1e-2
).fit(train)
print(f"accuracy on {len(test)} new networks: {model.score(test):.3f}")

found = []
structures = model.explain(test, classes="circle")
for structure, graph in zip(structures, networks[90:], strict=True):
    if graph.graph["target"] == "circle":
        first = (-structure.node_importance).argsort()[:6]
        found.append(len(set(first.tolist()) & set(graph.graph["friends"])) / 6)
        if len(found) <= 2:
            print(structure)
            structure.draw(f"{structure.name}.svg")
            # for Gephi
            nx.write_gexf(structure.to_networkx(), f"{structure.name}.gexf")
share = sum(found) / len(found)
print(f"of the six most important people, the share that is in the circle: {share:.2f}")
