"""Small models to serve: time and format of an answer do not depend on how well a model was trained."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing import Pipe
from threading import Thread
from typing import Any

import numpy as np
import torch
import uvicorn

from egocnn.data.graphs import Graphs
from egocnn.data.sources.smiles import from_smiles
from egocnn.encode.encoder import Encoder
from egocnn.model import Model
from egocnn.show.serve.model import ServedModel
from egocnn.show.serve.pool import Worker, WorkerPool, answer_requests
from egocnn.show.serve.server import build, listen
from egocnn.show.serve.settings import ServeConfig
from tests.show.serve.stubs import until
from tests.support.tiny import MODEL

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather have the successor of httpx, which few have installed
    from fastapi.testclient import TestClient

MOLECULES = ("CCO", "CC", "CCCO", "CCC", "c1ccccc1O", "c1ccccc1", "CC(=O)O", "CC(C)=O", "NCC#N", "CCN")


def of(graphs: Graphs, name: str = "small", **about: Any) -> ServedModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        predictor = Model.build(MODEL, Encoder.fit(graphs, MODEL))
    predictor.networks[0].eval()
    plain = Model(config=predictor.config, encoder=predictor.encoder, networks=predictor.networks, about=about)
    return ServedModel(predictor=plain, name=name)


@cache
def classifier() -> ServedModel:
    targets = ["alcohol" if smiles.endswith("O") else "other" for smiles in MOLECULES]
    return of(from_smiles(MOLECULES, targets), data="/somewhere/private/molecules.csv")


@cache
def of_three_classes() -> ServedModel:
    return of(from_smiles(MOLECULES, [("a", "b", "c")[i % 3] for i in range(len(MOLECULES))]))


@cache
def regressor() -> ServedModel:
    return of(from_smiles(MOLECULES, [float(len(smiles)) for smiles in MOLECULES]))


@cache
def of_several_targets() -> ServedModel:
    """alcohol: a class, size: a value"""
    target = np.array([[smiles.endswith("O"), len(smiles)] for smiles in MOLECULES], np.float64)
    kinds = (("alcohol", ("no", "yes")), ("size", ()))
    return of(from_smiles(MOLECULES).replace(target=target, targets=kinds), read={"target": "alcohol,size"})


def of_two_networks(served: ServedModel) -> ServedModel:
    """The same with one more network that has other weights."""
    predictor = served.predictor
    other = Model.build(predictor.config, predictor.encoder).networks[0].eval()
    several = replace(predictor, networks=(*predictor.networks, other), noise=0.1)
    return replace(served, predictor=several)


@cache
def of_networks() -> ServedModel:
    """Trained on graphs without labels, as social networks are."""
    rings = np.concatenate([np.array([(i, (i + 1) % 5) for i in range(5)]) + 5 * g for g in range(4)])
    graphs = Graphs.from_edges(
        node_counts=[5] * 4, edges=rings, target=np.array([0, 1, 0, 1]), class_names=("club", "family")
    )
    return of(graphs, data="IMDB-BINARY")


def in_thread(model: Any, **limits: Any) -> Worker:
    """A worker that is a thread of this process: what a test replaces in a module is replaced for it too."""
    ours, theirs = Pipe()
    Thread(target=answer_requests, args=(theirs, model), kwargs=limits, daemon=True).start()
    return Worker(ours, lambda: None)


@cache
def served(model: ServedModel, config: ServeConfig) -> Any:
    """The application in front of this model; one for all tests, as it would stand for all requests."""
    pool = WorkerPool(lambda: in_thread(model), workers=config.workers, seconds=config.work_seconds)
    return build(pool, config)


@contextmanager
def running(app: Any, config: ServeConfig, **settings: Any) -> Iterator[Any]:
    """Host and port of a server in a thread of this process."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", lifespan="off", **settings))
    with listen(config) as opened:
        thread = Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            until(lambda: server.started)
            yield opened.getsockname()
        finally:
            server.should_exit = True
            thread.join()


def client(model: ServedModel | None = None, **limits: Any) -> TestClient:
    """Asks as a browser on the same machine would."""
    return asking(served(model or classifier(), ServeConfig(**limits)))


def asking(app: Any) -> TestClient:
    return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
