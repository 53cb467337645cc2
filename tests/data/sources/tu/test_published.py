"""Only published names are asked of a server: a file name mistyped, or a molecule, stays on this machine."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

import egocnn
from egocnn.data.read import read
from egocnn.data.sources.smiles import parse_smiles
from egocnn.data.sources.tu.download import CONTENT
from egocnn.data.sources.tu.published import PUBLISHED, similar_names
from egocnn.errors import DataError
from tests.support.commands import check_refused, runner
from tests.support.tiny import ALCOHOLS, FLAGS

SECRETS = ("CCO", "c1ccccc1O", "CC-O", "OCC1", "N", "NOSUCH", "MUTAGS", "some_name")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """Hosts whose address anybody has asked for; none is told."""
    hosts: list[object] = []

    def refuse(host: object, *_: object, **__: object) -> Any:
        hosts.append(host)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("EGOCNN_CACHE", str(tmp_path / "cache"))
    for name in ("EGOCNN_DATA", "EGOCNN_TU_URL", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return hosts


@pytest.mark.parametrize("text", SECRETS)
def test_what_is_not_published_is_refused_without_a_word_to_anyone(text: str, asked: list[object]) -> None:
    with pytest.raises(DataError, match="is neither a file or folder nor the name of a published TU data set") as error:
        read(text)
    assert "\n" not in str(error.value)
    assert asked == []


@pytest.mark.parametrize("text", ["CCO", "CC(=O)O", "c1ccccc1O", "OC[C@@H](N)C"])
def test_a_molecule_is_told_how_it_would_be_read(text: str, asked: list[object]) -> None:
    pytest.importorskip("rdkit")
    with pytest.raises(DataError, match="a SMILES by itself is not read yet; put it into a column of"):
        read(text)
    assert asked == []


def test_no_command_and_no_model_asks_for_a_molecule(
    tmp_path: Path, asked: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    run = runner(capsys)
    assert run("train", ALCOHOLS, "-o", tmp_path / "run", *FLAGS, "--epochs", "1", "--quiet")[0] == 0
    wanted = "CCO: is neither a file or folder nor the name of a published TU data set"
    check_refused(run, wanted, "info", "CCO")
    check_refused(run, wanted, "predict", tmp_path / "run", "CCO", "-o", tmp_path / "p.csv")
    check_refused(run, wanted, "explain", tmp_path / "run", "CCO", "-o", tmp_path / "report")
    check_refused(run, wanted, "train", "CCO", "-o", tmp_path / "other")
    model = egocnn.load(tmp_path / "run")
    for ask in (model.predict, model.predict_proba, model.explain):
        with pytest.raises(DataError, match=wanted):
            ask("CCO")
    assert asked == []


def test_a_published_name_is_asked_for(asked: list[object]) -> None:
    """Else the tests above would pass with any reader that never asks."""
    with pytest.raises(DataError, match="no network in this test"):
        read("KKI")
    assert asked == ["www.chrsmrrs.com"]


def test_a_name_that_is_nearly_right_is_put_right(asked: list[object]) -> None:
    for name, wanted in (("mutag", "MUTAG"), ("PTC-MR", "PTC_MR"), ("IMDB_BINARY", "IMDB-BINARY"), ("NCI", "NCI1")):
        assert wanted in similar_names(name)
    with pytest.raises(DataError, match="did you mean MUTAG"):
        read("Mutag")
    assert similar_names("CCO") == []
    assert asked == []


def test_all_sets_of_the_paper_are_published_and_no_name_is_a_molecule() -> None:
    pytest.importorskip("rdkit")
    assert set(CONTENT) < PUBLISHED
    assert len(PUBLISHED) == 128
    for name in sorted(PUBLISHED):
        with pytest.raises(DataError):
            parse_smiles(name)
