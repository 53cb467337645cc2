"""Our techniques as one of PyTorch Geometric's explainer algorithms: an EgoModule and tensors -> an Explanation."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from egocnn.config import ExplainConfig, Technique
from egocnn.errors import ConfigError
from egocnn.explain import explain
from egocnn.explain.techniques.attention import AttentionHead
from egocnn.interop.pyg.module import EgoModule
from egocnn.interop.pyg.tensors import class_of

log = logging.getLogger(__name__)


class _EgoExplainer(nn.Module):
    """Explains the predictions of an :class:`~egocnn.interop.pyg.EgoModule` by egocnn's own techniques.

    ``node_mask`` (N, 1) and ``edge_mask`` (M), in the order of ``edge_index``, are importances between 0 and 1, which
    is what thresholds, subgraphs and metrics expect: what speaks against the explained class is 0, and the
    largest of every graph is 1. For a regressor it is the size that counts, raised or lowered. The importances
    themselves, signed, stand beside them as ``node_importance`` (N) and ``edge_importance`` (M).

    Arguments:
        technique: How importance is found.
        attention: The trained attention layers, one for each network, for the paper's technique.
        settings: Further fields of :class:`~egocnn.config.ExplainConfig`.

    Example:
        >>> import egocnn
        >>> graphs = egocnn.read("compounds:alcohols:sizes=3-5,per_size=2")
        >>> model = egocnn.EgoCNNClassifier(width=8, depth=1, epochs=2, seed=0).fit(graphs)
        >>> from torch_geometric.explain import Explainer
        >>> from egocnn.interop.pyg import EgoExplainer, as_module
        >>> module = as_module(model)
        >>> config = {"mode": "multiclass_classification", "task_level": "graph"}
        >>> config |= {"return_type": "raw"}
        >>> masks = {"node_mask_type": "object", "edge_mask_type": "object"}
        >>> how = {"explanation_type": "model", "model_config": config, **masks}
        >>> explainer = Explainer(module, algorithm=EgoExplainer(), **how)
        >>> data = module.to_data(graphs[:1])
        >>> explainer(data.x, data.edge_index, batch=data.batch).node_mask.shape
        torch.Size([11, 1])"""

    explainer_config: Any
    model_config: Any

    def __init__(self, technique: Technique = "contributions", *, attention: Any = None, **settings: Any) -> None:
        super().__init__()
        self.settings = ExplainConfig(technique=technique, **settings)
        self.attention: Sequence[AttentionHead] | None = attention

    def supports(self) -> bool:
        """Graphs as wholes, outputs as the module gives them, a class among several or a value, nodes and edges.

        Returns:
            Whether it can explain with these settings; if not, the log says which one it cannot."""
        nodes = self.explainer_config.node_mask_type
        for name, found, known in (
            ("task_level", self.model_config.task_level.value, ("graph",)),
            ("mode", self.model_config.mode.value, ("multiclass_classification", "regression")),
            ("return_type", self.model_config.return_type.value, ("raw",)),
            ("node_mask_type", "object" if nodes is None else nodes.value, ("object",)),
        ):
            if found not in known:
                log.error("EgoExplainer: %s must be %s, got %s", name, " or ".join(known), found)
                return False
        return True

    def forward(
        self, model: nn.Module, x: Tensor, edge_index: Tensor, *, target: Tensor, index: Any = None, **tensors: Any
    ) -> Any:
        """Explain; called by ``torch_geometric.explain.Explainer``.

        Arguments:
            model: What :func:`~egocnn.interop.pyg.as_module` made.
            x: (N, labels + attributes) as the module reads them.
            edge_index: (2, M) every edge in both directions.
            target: (B) the number of the class to explain, per graph.
            index: Explain these graphs only; all others get zeros.
            tensors: What else the module takes, ``batch`` say.

        Returns:
            An ``Explanation`` with masks and importances."""
        if not isinstance(model, EgoModule):
            raise ConfigError(f"EgoExplainer explains what as_module makes, not {type(model).__name__}")
        graphs = model.to_graphs(x, edge_index, **tensors)
        classes = self._classes(model.predictor.class_names, target)
        how: dict[str, Any] = {"attention": self.attention, "fidelity": False, "device": x.device.type}
        structures = explain(model.predictor, graphs, self.settings, classes=classes, **how)
        device, graph_of = x.device, torch.from_numpy(graphs.graph_of).to(x.device)
        graph_of_edges = graph_of[edge_index[0]]
        parts = ([getattr(each, name) for each in structures] for name in ("node_importance", "edge_importance"))
        nodes, edges = (torch.from_numpy(np.concatenate([np.zeros(0), *each])).float().to(device) for each in parts)
        # the position in graphs.edges of every column, whichever way round
        own = torch.from_numpy(graphs.edges.astype(np.int64)).to(x.device)
        low, high = edge_index.long().sort(dim=0).values
        edges = edges[torch.searchsorted(own[:, 0] * len(x) + own[:, 1], low * len(x) + high)]
        if index is not None:
            chosen = torch.zeros(len(graphs), device=x.device)
            chosen[torch.as_tensor(index, device=x.device).reshape(-1)] = 1
            nodes, edges = nodes * chosen[graph_of], edges * chosen[graph_of_edges]
        found = class_of("explain", "Explanation")(node_importance=nodes, edge_importance=edges)
        if self.explainer_config.node_mask_type is not None:
            found.node_mask = self._mask(nodes, graph_of, len(graphs))[:, None]
        if self.explainer_config.edge_mask_type is not None:
            found.edge_mask = self._mask(edges, graph_of_edges, len(graphs))
        return found

    def _classes(self, names: Sequence[str], target: Tensor) -> list[str] | None:
        if self._is_value == bool(names):
            what = f"one of {len(names)} classes" if names else "a value"
            raise ConfigError(f"the mode is {self.model_config.mode.value}, but the model predicts {what}")
        if not names:
            return None
        numbers = target.reshape(-1).tolist()
        if not all(0 <= number < len(names) for number in numbers):
            raise ConfigError(f"the target must be class numbers from 0 to {len(names) - 1}, got {numbers}")
        return [names[number] for number in numbers]

    def _mask(self, importance: Tensor, graph_of: Tensor, n_graphs: int) -> Tensor:
        size = importance.abs() if self._is_value else importance.clamp(min=0)
        largest = size.new_zeros(n_graphs).scatter_reduce(0, graph_of, size, "amax")
        return size / largest.clamp(min=torch.finfo(size.dtype).tiny)[graph_of]

    @property
    def _is_value(self) -> bool:
        return bool(self.model_config.mode.value == "regression")
