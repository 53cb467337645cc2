"""EgoConv inside a model of PyTorch Geometric: its data, loader, readout, our layer."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_max_pool

import egocnn
from egocnn.data.sources.pyg import to_pyg
from egocnn.interop.pyg import RankNeighbours, neighbours_of
from egocnn.nn import EgoConv


class Network(nn.Module):
    def __init__(self, labels: int, width: int = 32) -> None:
        super().__init__()
        self.first = GINConv(nn.Linear(labels, width))  # theirs: neighbours summed up
        self.ego = EgoConv(width, width, k=4)  # ours: a filter per ranked neighbour
        self.out, self.labels = nn.Linear(width, 2), labels

    def forward(self, data: Batch) -> Tensor:
        x = F.one_hot(data.node_label, self.labels).float()
        h = F.relu(self.first(x, data.edge_index))
        h = self.ego(h, neighbours_of(data))
        return torch.as_tensor(self.out(global_max_pool(h, data.batch)))


torch.manual_seed(0)
graphs = egocnn.read("compounds:alcohols:sizes=3-12,per_size=4")  # tested: larger ones
train, test = to_pyg(graphs.select("train")), to_pyg(graphs.select("test"))
rank = RankNeighbours(k=4).fit(train)
train = [rank(data) for data in train]
whole = Batch.from_data_list([rank(data) for data in test])
network = Network(len(graphs.node_label_names))
optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
for _ in range(30):
    for batch in DataLoader(train, batch_size=16, shuffle=True):
        optimiser.zero_grad()
        torch.autograd.backward(F.cross_entropy(network(batch), batch.y))
        optimiser.step()
right = network.eval()(whole).argmax(dim=1) == whole.y
print(f"accuracy on sizes never seen: {right.float().mean():.3f}")
