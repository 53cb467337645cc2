"""Small valid files of every kind, from which the broken ones are made."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from egocnn.config import ModelConfig, TrainConfig
from egocnn.data.graphs import Graphs
from egocnn.data.sources.smiles import from_smiles
from egocnn.data.store import write_store
from egocnn.encode.encoder import Encoder
from egocnn.files import write_json
from egocnn.model import Model
from egocnn.train.checkpoint import Checkpoint
from egocnn.train.engines.common import Progress
from fuzz import parts

CSV = (
    b"name,smiles,label,split,group\na,CCO,1,train,x\nb,c1ccccc1,0,test,\nc,[NH4+],1,validation,x\n",
    b'smiles,y\n"C[C@H](N)C(=O)O",1.5\nClc1ccc(Br)cc1.[Na+],-2e3\n[13CH4],\n',
    b'\xef\xbb\xbfSMILES,"the, class"\r\nN#N,"a ""b"""\r\n"O=C=O",c\r\n',
    b"id\tsmiles\ttarget\n1\tC1CC1\tyes\n2\tC/C=C/C\tno\n",
)
SDF = (
    b"ethanol\n  seed\n\n  3  2  0  0  0  0            999 V2000\n"
    b"    0.0000    0.0000    0.0000 C   0  0\n    1.2990    0.7500    0.0000 C   0  0\n"
    b"    2.5981   -0.0000    0.0000 O   0  0\n  1  2  1  0\n  2  3  1  0\nM  END\n"
    b">  <label>  (1)\n1\n\n> <split>\ntrain\n\n$$$$\n"
    b"\n\n\n  2  0  0  0  0  0            999 V2000\n    0.0000    0.0000    0.0000 Na  0  0\n"
    b"    3.0000    0.0000    0.0000 Cl  0  0\nM  CHG  2   1   1   2  -1\nM  END\n> <label>\n0\n\n$$$$\n",
    b"amide\n  seed\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 3 2 0 0 0\n"
    b"M  V30 BEGIN ATOM\nM  V30 1 C 0 0 0 0\nM  V30 2 N 1.5 0 0 0 CHG=1\nM  V30 3 O -0.75 1.299 0 0\n"
    b"M  V30 END ATOM\nM  V30 BEGIN BOND\nM  V30 1 1 1 2\nM  V30 2 2 1 -\nM  V30 3\nM  V30 END BOND\n"
    b"M  V30 END CTAB\nM  END\n> <y>\n1.5\n\n$$$$\n",
)
JSONL = (
    b'{"name": "a", "nodes": ["C", "O"], "edges": [[0, 1, "single"]], "target": "x", "smiles": "CO"}\n'
    b'{"name": "b", "nodes": [1, null], "edges": [], "target": null}\n',
    b'{"nodes": [{"label": 1, "attributes": [0.5, -2]}], "edges": [], "y": 1.5, "critical_nodes": [0], '
    b'"split": "test"}\n',
    b'{"nodes": 4, "edges": [{"source": 0, "target": 1, "weight": 2.5}, {"source": 3, "target": 1, "weight": 1}], '
    b'"label": true, "critical_edges": [[1, 3]], "group": 7}\n\n{"nodes": 1}\n',
)
GRAPHML = (
    b"""<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="l" for="node" attr.name="label" attr.type="string"><default>C</default></key>
<key id="w" for="edge" attr.name="weight" attr.type="double"/><key id="t" for="graph" attr.name="y" attr.type="int"/>
<graph edgedefault="undirected"><data key="t">1</data><node id="a"><data key="l">O</data></node><node id="b"/>
<edge source="a" target="b"><data key="w">2.5</data></edge></graph></graphml>""",
    b"""<graphml><key id="d" for="all" attr.name="attr" attr.type="float"/><graph id="g" edgedefault="directed">
<node id="0"><data key="d">1</data></node><node id="1"><data key="d">2</data></node>
<edge id="e" source="0" target="1" directed="false"/><edge source="1" target="0"/></graph>
<graph><node id="0"><data key="d">3</data></node></graph></graphml>""",
)
GEXF = (
    b"""<?xml version="1.0"?><gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">
<graph defaultedgetype="undirected"><attributes class="node"><attribute id="0" title="attr" type="float"/></attributes>
<nodes><node id="0" label="C"><attvalues><attvalue for="0" value="1.5"/></attvalues></node>
<node id="1" label="O"><attvalues><attvalue for="0" value="2"/></attvalues></node></nodes>
<edges><edge id="0" source="0" target="1" weight="2.0" label="x"/></edges></graph></gexf>""",
    b"""<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3"><graph mode="dynamic"
timeformat="double"><attributes class="edge" mode="dynamic"><attribute id="w" title="weight" type="float">
<default>1</default></attribute></attributes><nodes><node id="a" start="1" end="2"><viz:color r="1" g="2" b="3"/>
<viz:position x="1" y="2" z="0"/><viz:size value="2"/></node><node id="b" pid="a"><spells><spell start="1"/></spells>
</node></nodes><edges><edge source="a" target="b" type="mutual"><attvalues><attvalue for="w" value="2" start="1"/>
</attvalues></edge></edges></graph></gexf>""",
)
TU = {
    "S_A.txt": b"1, 2\n2, 1\n3, 4\n4, 3\n4, 5\n5, 4\n",
    "S_graph_indicator.txt": b"1\n1\n2\n2\n2\n",
    "S_graph_labels.txt": b"1\n-1\n",
    "S_node_labels.txt": b"0\n1\n2\n0\n0\n",
    "S_edge_labels.txt": b"0\n0\n1\n1\n0\n0\n",
    "S_node_attributes.txt": b"0.5, 1\n-2, 1e3\n0,0\n1,1\n2,2\n",
    "S_graph_attributes.txt": b"1.5\n2\n",
}
OBJECTS = (
    b'[{"edge_index": [[0, 1], [1, 0]], "x": [[1.5], [2]], "y": [1], "edge_attr": [0, 0], "name": "a"},'
    b' {"edge_index": [[], []], "x": [[0]], "y": [0], "num_nodes": 1}]',
    b'[{"edge_index": [[0, 1], [1, 2]], "z": [6, 8, 1], "edge_weight": [0.5, 2], "y": 1.5}]',
    b'[{"edge_index": [[0], [1]], "node_label": [0, -1], "edge_attr": [[0, 1]], "y": "text", "split": "test"}]',
    b'[{"nodes": [["a", {"label": "C", "attr": [1, 2]}], [3, {"label": 1, "attr": [0, 0]}]],'
    b' "edges": [["a", 3, {"weight": 2, "label": "x"}]], "graph": {"target": "t", "smiles": "CO"}}]',
)
NAMES = (
    b"compounds:alcohols:sizes=3-4,per_size=2,seed=7",
    b"compounds:alcohols:sizes=5-9,per-size=1",
    b"compounds:methylalkanes:sizes=5-9",
)
TEXTS = (
    b"name|C|O|bond|class|caption|title",
    b"<script>alert(1)</script>|</title><svg onload=x>|\"><img src=x onerror=y>|'|&lt;b&gt;|]]>|<!--",
    "javascript:alert(1)|{{DATA}}|</style>|\u2028|日本|%s|\\u003c".encode(),
)


@cache
def graphs() -> Graphs:
    """Two small graphs with every kind of column."""
    return Graphs.from_edges(
        node_counts=[3, 2],
        edges=np.array([[0, 1], [1, 2], [3, 4], [4, 4]]),
        names=["one", "zwei"],
        node_label=np.array([0, 1, 0, -1, 1]),
        node_label_names=("C", "O"),
        edge_label=np.array([0, 1, 0, -1]),
        edge_label_names=("single", "double"),
        edge_weight=np.array([1, 2, 3, 4]),
        edge_truth=np.array([0, 1, 0, 0], bool),
        node_attr=np.arange(10, dtype=np.float32).reshape(5, 2),
        node_truth=np.array([0, 1, 1, 0, 0], bool),
        target=np.array([1, 0]),
        class_names=("no", "yes"),
        group=np.array([0, 1]),
        part=np.array([0, 2]),
        smiles=("CO", "CC"),
    )


MODELS = (
    ModelConfig(width=4, depth=2, hidden=4, k=2),
    ModelConfig(width=4, depth=1, hidden=4, k=2, slots=2, tie=False),
)


@cache
def predictor(which: int) -> Model:
    config = MODELS[which]
    known = graphs() if which == 0 else graphs().replace(target=np.array([0.5, 2.0]), class_names=())
    torch.manual_seed(0)
    built = Model.build(config, Encoder.fit(known, config))
    built.networks[0].eval()
    return built


def progress(which: int) -> Progress:
    """As at the start of a training."""
    torch.manual_seed(0)
    built = Model.build(MODELS[which], predictor(which).encoder)
    return Progress.begin(built.networks[0], TrainConfig())


@cache
def of_molecules() -> Model:
    """A classifier of small molecules, as one that is served."""
    known = from_smiles(("CCO", "CC", "CCCO", "c1ccccc1", "CC(=O)O", "NCC#N"), ["yes", "no", "yes", "no", "yes", "no"])
    torch.manual_seed(0)
    built = Model.build(MODELS[0], Encoder.fit(known, MODELS[0]))
    built.networks[0].eval()
    return built


FINGERPRINT = "f" * 64


def _folder(write: Any) -> bytes:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "made")
        write(folder)
        return parts.join({file.name: file.read_bytes() for file in sorted(folder.iterdir())})


def _run(folder: Path, which: int) -> None:
    predictor(which).save(folder)
    write_json(folder / "metrics.json", {"interrupted": False, "parameters": 9, "epochs": 1, "best_epoch": 0})
    Checkpoint(folder / "checkpoint.safetensors", FINGERPRINT).keep([progress(which)])


def _saved(folder: Path) -> None:
    folder.mkdir()
    graphs().save(folder / "g.safetensors")


@cache
def runs() -> tuple[bytes, ...]:
    return tuple(_folder(lambda folder, which=which: _run(folder, which)) for which in range(len(MODELS)))


@cache
def stores() -> tuple[bytes, ...]:
    plain = graphs().replace(smiles=None, group=None, part=None, node_attr=None)
    return tuple(_folder(lambda folder, some=some: write_store([some], folder)) for some in (graphs(), plain))


@cache
def saved() -> tuple[bytes, ...]:
    ((_, content),) = parts.cut(_folder(_saved)).items()
    return (content,)


@cache
def sets() -> tuple[bytes, ...]:
    few = {name: TU[name] for name in ("S_A.txt", "S_graph_indicator.txt")}
    return parts.join(TU), parts.join(few), parts.join({f"inner/{name}": content for name, content in TU.items()})


@cache
def zips() -> tuple[bytes, ...]:
    return (
        *sets()[1:],
        *(parts.pack({f"S/{name}": content for name, content in some.items()}) for some in (TU, {})),
        parts.join({**TU, "../evil.txt": b"1", "/etc/cron.d/x": b"1", "link>": b"/etc/passwd", "b.txt|12": b"1" * 99}),
    )


def _records(folder: Path) -> None:
    from egocnn.explain.structure import CriticalStructure, write_structures

    folder.mkdir()
    graph = graphs()[0]
    structure = CriticalStructure(
        graph=graph,
        predicted="yes",
        probability=0.75,
        explained="yes",
        technique="made up",
        base=-0.25,
        output=1.0,
        node_importance=np.array([1.0, 0.5, -0.25]),
        edge_importance=np.array([0.5, 0.0]),
        critical_nodes=np.array([0, 1]),
        critical_edges=np.array([0]),
    )
    write_structures([structure], folder / "structures.jsonl")
    run = {"score": 0.5, "validation_score": 0.5, "restart": 1, "seeds": [0]}
    sizes = dict.fromkeys(("train_graphs", "validation_graphs", "test_graphs", "parameters", "peak_megabytes"), 1)
    seconds = dict.fromkeys(("preparing_seconds", "training_seconds", "testing_seconds"), 1.0)
    fold = {"fold": 1, "score": 0.5, "validation_score": 0.5, "runs": [run], **sizes, **seconds}
    texts = dict.fromkeys(("model", "data", "protocol", "score", "split", "fingerprint", "machine"), "a")
    numbers = {"mean": 0.5, "std": 0.1, "interval": [0, 1], "seconds": 1, "parameters": 1, "seed": 0, "restarts": 1}
    record = {**texts, **numbers, **seconds, "folds": [fold], "runs": 1, "stacked": False, "peak_megabytes": 1.0}
    write_json(folder / "record.json", {**record, "settings": {}, "versions": {}})
    kept = {"fingerprint": "f", "stated": {"model": "a"}, "seconds": 1, "folds": [fold]}
    write_json(folder / "record.json.partial", kept)


@cache
def records() -> tuple[bytes, ...]:
    return (_folder(_records),)
