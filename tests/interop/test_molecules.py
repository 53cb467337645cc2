"""Estimators on molecules as chemists have them: every form reads alike, and targets come back as they were."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import egocnn
from egocnn import EgoCNNClassifier, EgoCNNRegressor
from egocnn.data.molecules import to_molecule
from egocnn.errors import DataError, MissingColumnError
from egocnn.explain.patterns import find_patterns
from egocnn.explain.structure import CriticalStructure
from egocnn.show.report.folder import write_explanations
from tests.support.samples import refusal, sure
from tests.support.tiny import SIZES

Chem = pytest.importorskip("rdkit.Chem")
pd = pytest.importorskip("pandas")

SMALL: dict[str, Any] = SIZES | {"networks": 1, "epochs": 2}
CHAINS = ["C" * n for n in range(2, 14)]
SMILES = [*CHAINS, *(f"{chain}O" for chain in CHAINS)]
IS_ALCOHOL = np.arange(24) >= 12
AFTER = [f"{chain}N" for chain in CHAINS[:4]]


@pytest.fixture(scope="module")
def fitted() -> EgoCNNClassifier:
    return EgoCNNClassifier(**SMALL).fit(SMILES, IS_ALCOHOL.astype(int))


FORMS: dict[str, Any] = {
    "tuple": tuple,
    "array": np.array,
    "array of objects": lambda smiles: np.array(smiles, object),
    "Series": lambda smiles: pd.Series(smiles, index=range(100, 100 + len(smiles))),
    "generator": iter,
    "molecules": lambda smiles: [Chem.MolFromSmiles(text) for text in smiles],
    "molecules with hydrogens": lambda smiles: [Chem.AddHs(Chem.MolFromSmiles(text)) for text in smiles],
    "DataFrame": lambda smiles: pd.DataFrame({"weight": 1.5, "SMILES": smiles}),
    "DataFrame of molecules": lambda smiles: pd.DataFrame({"smiles": [Chem.MolFromSmiles(text) for text in smiles]}),
    "Graphs": egocnn.read,
    "list of Graph": lambda smiles: list(egocnn.read(smiles)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_molecules_is_predicted_and_trained_on_alike(form: Any, fitted: EgoCNNClassifier) -> None:
    expected = fitted.predict_proba(SMILES)
    np.testing.assert_allclose(fitted.predict_proba(form(SMILES)), expected, atol=1e-6)
    np.testing.assert_array_equal(fitted.predict(form(SMILES)), fitted.predict(SMILES))
    assert fitted.score(form(SMILES), IS_ALCOHOL.astype(int)) == fitted.score(SMILES, IS_ALCOHOL.astype(int))
    for one, other in zip(fitted.explain(form(SMILES[:3])), fitted.explain(SMILES[:3]), strict=True):
        np.testing.assert_allclose(one.node_importance, other.node_importance, atol=1e-5)
    if form is not FORMS["list of Graph"]:  # single graphs do not say which are copies of one molecule
        again = EgoCNNClassifier(**SMALL).fit(form(SMILES), IS_ALCOHOL.astype(int))
        np.testing.assert_allclose(again.predict_proba(SMILES), expected, atol=1e-6)


def test_one_molecule_needs_no_list(fitted: EgoCNNClassifier) -> None:
    expected = fitted.predict_proba(["CCO"])
    for one in ("CCO", Chem.MolFromSmiles("CCO"), egocnn.read("CCO")[0]):
        np.testing.assert_allclose(fitted.predict_proba(one), expected, atol=1e-6)
        assert len(fitted.predict(one)) == len(fitted.explain(one)) == 1


def test_one_networkx_and_one_pytorch_geometric_graph_need_no_list(fitted: EgoCNNClassifier) -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.path_graph(3)
    for node, label in enumerate(("C|H3", "C|H2", "O|H1")):
        graph.nodes[node]["label"] = label
    nx.set_edge_attributes(graph, "single", "label")
    np.testing.assert_allclose(fitted.predict_proba(graph), fitted.predict_proba("CCO"), atol=1e-6)
    data = pytest.importorskip("torch_geometric.data")
    import torch

    path = data.Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    plain = EgoCNNClassifier(**SMALL).fit([path] * 4, [0, 1, 0, 1])
    assert plain.predict(path).shape == (1,)
    assert len(plain.explain(path)) == 1


def test_atoms_are_counted_as_in_the_molecule_that_was_given(fitted: EgoCNNClassifier) -> None:
    molecule = Chem.RenumberAtoms(Chem.MolFromSmiles("CC(=O)NC"), [3, 0, 4, 2, 1])
    (structure,) = fitted.explain(molecule)
    assert structure.graph.node_label == tuple(atom.GetSymbol() for atom in molecule.GetAtoms())
    bonds = {tuple(sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx()))) for b in molecule.GetBonds()}
    assert {(u, v) for u, v in structure.graph.edges.tolist()} == bonds
    assert Chem.CanonSmiles(structure.graph.smiles) == Chem.CanonSmiles("CC(=O)NC")
    assert structure.draw().startswith("<svg")


def bonds_of(molecule: Any) -> set[Any]:
    ends = ((bond, (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())) for bond in molecule.GetBonds())
    return {(min(pair), max(pair), str(bond.GetBondType())) for bond, pair in ends}


@pytest.mark.parametrize(
    "smiles", ["CC(=O)Nc1c[nH]cn1", "O=[N+]([O-])c1ccc[nH]1", "C=CC#N", "[2H]C(Cl)Cl", "[Na+].CC(=O)[O-]"]
)
def test_a_molecule_in_any_order_of_its_atoms_is_drawn_as_it_is(smiles: str) -> None:
    molecule = Chem.MolFromSmiles(smiles)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(molecule.GetNumAtoms()).tolist()
        turned = Chem.RenumberAtoms(molecule, order)
        drawn: Any = to_molecule(egocnn.read(turned)[0])
        assert [atom.GetSymbol() for atom in drawn.GetAtoms()] == [atom.GetSymbol() for atom in turned.GetAtoms()]
        assert Chem.MolToSmiles(drawn) == Chem.MolToSmiles(turned)
        assert bonds_of(drawn) == bonds_of(turned)


def test_molecules_keep_their_names_and_are_left_as_they_were() -> None:
    molecule = Chem.MolFromSmiles("C1=CC=CC=C1O", sanitize=False)
    before = Chem.MolToSmiles(molecule)
    graphs = egocnn.read([molecule, molecule])
    assert graphs[0].node_label == ("c|H1", "c|H1", "c|H1", "c|H1", "c|H1", "c", "O|H1")
    assert Chem.MolToSmiles(molecule) == before
    assert sure(graphs.group).tolist() == [0, 0]


# ── targets ───────────────────────────────────────────────────────────────────────────────────────

WORDS = ["alkane", "alcohol"]
TARGETS: dict[str, Any] = {
    "int64": IS_ALCOHOL.astype(np.int64),
    "int8": IS_ALCOHOL.astype(np.int8) - 1,
    "uint16": IS_ALCOHOL.astype(np.uint16),
    "bool": IS_ALCOHOL,
    "float of whole numbers": IS_ALCOHOL.astype(np.float32),
    "texts": np.array([WORDS[i] for i in IS_ALCOHOL.astype(int)]),
    "objects": np.array([WORDS[i] for i in IS_ALCOHOL.astype(int)], object),
    "negative numbers": np.array([7, -3] * 12),
    "list of bool": IS_ALCOHOL.tolist(),
    "list of str": [WORDS[i] for i in IS_ALCOHOL.astype(int)],
    "Series of int": pd.Series(IS_ALCOHOL.astype(int), index=range(7, 31)),
    "Series of str": pd.Series([WORDS[i] for i in IS_ALCOHOL.astype(int)]),
    "category of str": pd.Series([WORDS[i] for i in IS_ALCOHOL.astype(int)], dtype="category"),
    "category of int": pd.Categorical(IS_ALCOHOL.astype(int) + 5),
    "nullable": pd.Series(IS_ALCOHOL.astype(int), dtype="Int64"),
}


def check_types(model: EgoCNNClassifier, expected: Any) -> list[CriticalStructure]:
    """Classes, predictions and structures are of the type of these classes; the structures."""
    np.testing.assert_array_equal(model.classes_, expected)
    assert model.classes_.dtype == expected.dtype
    assert model.predict(SMILES).dtype == expected.dtype
    structures = model.explain(SMILES[:2], classes=expected[0])
    for structure in structures:
        assert structure.predicted in expected.tolist()
        assert structure.explained == expected[0]
        assert type(structure.predicted) is type(structure.explained) is type(expected.tolist()[0])
        plain = structure.to_plain()
        assert isinstance(plain["predicted"], str)
        assert isinstance(plain["class"], str)
        shown = structure.predicted if isinstance(structure.predicted, str) else f"class {structure.predicted}"
        assert str(structure).startswith(f"{structure.name}: {shown} (")
    return structures


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS)
def test_targets_come_back_as_they_were_also_after_loading(y: Any, tmp_path: Path) -> None:
    model = EgoCNNClassifier(**SMALL).fit(SMILES, y)
    expected = np.unique(np.asarray(y if not hasattr(y, "dtype") or str(y.dtype) != "Int64" else y.astype(int)))
    structures = check_types(model, expected)
    assert model.score(SMILES, y) == (model.predict(SMILES) == np.asarray(y)).mean()
    model.save(tmp_path / "run")
    check_types(egocnn.load(tmp_path / "run"), expected)
    names = json.loads((tmp_path / "run" / "config.json").read_text())["encoder"]["class_names"]
    assert {structure.to_plain()["predicted"] for structure in structures} <= set(names)


COLUMNS: dict[str, tuple[Any, Any]] = {
    "int": (IS_ALCOHOL.astype(np.int32), np.array([0, 1], np.int32)),
    "bool": (IS_ALCOHOL, np.array([False, True])),
    "category": (TARGETS["category of str"], np.array(["alcohol", "alkane"], object)),
    "category of many": (pd.Categorical(np.arange(24) // 2 * 5), np.arange(12) * 5),
    "texts": (TARGETS["list of str"], np.array(["alcohol", "alkane"], object)),
    "nullable": (pd.array(IS_ALCOHOL, dtype="boolean"), np.array([False, True])),
    "float of whole numbers": (IS_ALCOHOL.astype(float), np.array([0, 1])),
}


@pytest.mark.parametrize(("values", "expected"), COLUMNS.values(), ids=COLUMNS)
def test_the_targets_of_a_table_come_back_as_they_were(values: Any, expected: Any) -> None:
    frame = pd.DataFrame({"structure": SMILES, "toxic": values, "n": range(24)})
    model = EgoCNNClassifier(**SMALL).fit(frame, target="toxic", smiles="structure")
    by_name = EgoCNNClassifier(**SMALL).fit(frame, "toxic", smiles="structure")
    np.testing.assert_array_equal(by_name.predict_proba(frame), model.predict_proba(SMILES))
    structures = check_types(model, expected)
    assert all(structure.graph.target is None for structure in structures)
    assert model.score(frame) == (model.predict(frame) == np.asarray(frame["toxic"])).mean()
    assert by_name.score(frame, "toxic") == by_name.score(frame)
    (last,) = model.explain(frame[-1:])
    assert last.graph.target == frame["toxic"].iloc[-1]
    assert type(last.graph.target) is type(expected.tolist()[-1])


def test_several_columns_of_a_table_are_named_in_a_list() -> None:
    frame = pd.DataFrame({"smiles": SMILES, "A": IS_ALCOHOL.astype(int), "B": np.arange(24) / 10})
    by_list, by_name = (EgoCNNClassifier(**SMALL).fit(frame, y) for y in (["A", "B"], "A,B"))
    assert by_list.predict(SMILES).keys() == {"A", "B"}
    np.testing.assert_array_equal(by_list.predict(SMILES)["B"], by_name.predict(SMILES)["B"])
    assert refusal(EgoCNNClassifier(**SMALL).fit, frame, ["A", "C"]) == "y has shape (2,) for 24 graphs"


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([0, 1], [0, 1]),
        ([False, True], [False, True]),
        (["no", "yes"], ["no", "yes"]),
        ([0, 1, None], [0, 1]),  # whole numbers among gaps are floats to pandas
        ([False, True, None], [False, True]),
        (["no", "yes", None], ["no", "yes"]),
    ],
)
def test_each_of_several_targets_comes_back_as_its_column_had_it(
    values: list[Any], classes: list[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    frame = pd.DataFrame({"smiles": SMILES, "A": np.resize(values, 24), "B": np.arange(24) / 10})
    frame["A"] = frame["A"].where(frame["A"].notna(), None).infer_objects()
    model = EgoCNNClassifier(**SMALL).fit(frame, ["A", "B"])
    model.save(tmp_path / "run")
    for each in (model, egocnn.load(tmp_path / "run")):
        assert each.classes_["A"].tolist() == classes
        assert each.classes_.keys() == {"A"}
        found = each.predict(frame)
        assert set(found["A"].tolist()) <= set(classes)
        assert type(found["A"].tolist()[0]) is type(each.explain("CCO")[0].predicted) is type(classes[0])
        assert found["B"].dtype == np.float64
        assert each.score(frame) == each.score(SMILES, frame[["A", "B"]]) <= 1
    apart = EgoCNNClassifier(**SMALL).fit(SMILES, frame[["A", "B"]])
    assert apart.classes_["A"].tolist() == classes
    np.testing.assert_array_equal(apart.predict_proba(SMILES)["A"], model.predict_proba(SMILES)["A"])
    assert refusal(apart.fit, SMILES, frame[["A", "B"]][1:]) == "y has 23 rows for 24 graphs"
    for ask in (apart.predict, apart.predict_proba):
        ask(["FBr"])
    assert caplog.text.count("atoms that the model was not trained on (Br, F)") == 2


def test_rows_of_a_table_without_a_target_are_left_out_by_fit_with_a_line_and_predicted(
    fitted: EgoCNNClassifier, caplog: pytest.LogCaptureFixture
) -> None:
    frame = pd.DataFrame({"smiles": SMILES, "y": [None, *IS_ALCOHOL[1:].astype(int)]})
    with_gap = EgoCNNClassifier(**SMALL).fit(frame)
    assert "1 of 24 molecules have no target and are left out of the training" in caplog.text
    without = EgoCNNClassifier(**SMALL).fit(frame[1:].reset_index(drop=True))
    np.testing.assert_array_equal(with_gap.predict_proba(SMILES), without.predict_proba(SMILES))
    assert refusal(EgoCNNClassifier(**SMALL).fit, SMILES, frame["y"]).startswith(
        "y[0] is nan: a target that is not known"
    )
    assert fitted.predict(frame).shape == (24,)
    assert fitted.score(frame) == fitted.score(SMILES[1:], IS_ALCOHOL[1:].astype(int))
    assert fitted.explain(frame[:1])[0].graph.target is None


@pytest.mark.parametrize("values", [[3, 7], [False, True], ["a", "b"]])
def test_the_targets_inside_of_graphs_of_other_libraries_come_back_as_they_were(values: list[Any]) -> None:
    nx, data = pytest.importorskip("networkx"), pytest.importorskip("torch_geometric.data")
    import torch

    targets = values * 4
    networks = [nx.path_graph(n) for n in range(3, 11)]
    for network, target in zip(networks, targets, strict=True):
        network.graph["Label"] = target
    edges = torch.tensor([[0, 1], [1, 2]])
    ys = [target if isinstance(target, str) else torch.tensor([target]) for target in targets]
    pairs = [data.Data(edge_index=edges, num_nodes=3, y=y) for y in ys]
    for source in (networks, iter(networks), pairs):
        model = EgoCNNClassifier(**SMALL).fit(source)
        assert model.classes_.tolist() == values
        assert type(model.classes_.tolist()[0]) is type(values[0])
    (structure,) = model.explain(pairs[0])
    assert (structure.graph.target, type(structure.predicted)) == (values[0], type(values[0]))
    assert model.score(pairs) == (model.predict(pairs) == np.array(targets)).mean()


def test_a_regressor_reads_values_from_a_table_and_from_y() -> None:
    frame = pd.DataFrame({"smiles": SMILES, "class": ["drug"] * 24, "logp": range(24)})
    model = EgoCNNRegressor(**SMALL).fit(frame, "logp")
    again = EgoCNNRegressor(**SMALL).fit(SMILES, pd.Series(range(24)))
    np.testing.assert_allclose(model.predict(frame), again.predict(SMILES), atol=1e-5)
    assert model.score(frame) == pytest.approx(again.score(SMILES, range(24)), abs=1e-5) == model.score(frame, "logp")
    assert "y has shape () for 24 graphs" in refusal(model.score, frame, "class")
    assert again.predict(frame).shape == (24,)  # a column that happens to be called class is in nobody's way
    assert isinstance(model.explain("CCO")[0].predicted, float)
    assert model.explain(frame[3:4])[0].graph.target == 3.0
    guessed = EgoCNNRegressor(**SMALL).fit(frame.rename(columns={"logp": "y"})[["smiles", "y"]])
    assert guessed.explain(pd.DataFrame({"smiles": ["C"], "y": [3]}))[0].graph.target == 3.0


def test_the_way_of_reading_is_kept_with_the_model(tmp_path: Path) -> None:
    model = EgoCNNClassifier(**SMALL).fit(SMILES, IS_ALCOHOL, hydrogens=True)
    assert model.explain("CCO")[0].graph.n_nodes == 9
    model.save(tmp_path / "run")
    assert egocnn.load(tmp_path / "run").explain("CCO")[0].graph.n_nodes == 9
    EgoCNNClassifier(**SMALL).fit(SMILES, IS_ALCOHOL, salts="largest").save(tmp_path / "dry")
    assert egocnn.load(tmp_path / "dry").explain("O.CCO.[Na+]")[0].graph.smiles == "CCO"


def test_a_report_is_written_from_python_and_replaces_an_earlier_one_alone(
    fitted: EgoCNNClassifier, tmp_path: Path
) -> None:
    for _ in range(2):
        page = egocnn.write_report(fitted, SMILES[:3], tmp_path / "report", figures=2, technique="occlusion")
    assert page == tmp_path / "report" / "index.html"
    assert len(list((page.parent / "figures").iterdir())) == 2
    assert len((page.parent / "structures.jsonl").read_text().splitlines()) == 3
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("")
    assert "holds no earlier report" in refusal(egocnn.write_report, fitted, SMILES, tmp_path / "other")


def test_a_report_names_the_column_that_the_model_was_fitted_to(tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas").DataFrame({"smiles": SMILES, "toxic": [n % 2 for n in range(len(SMILES))]})
    fitted = EgoCNNClassifier(**SMALL).fit(frame, "toxic")
    assert '"target":"toxic"' in egocnn.write_report(fitted, frame[:3], tmp_path / "one").read_text()
    several = EgoCNNClassifier(**SMALL).fit(frame.assign(odd=frame.toxic), ["toxic", "odd"])
    assert '"target":"odd"' in egocnn.write_report(several, frame[:3], tmp_path / "two", target="odd").read_text()


def test_structures_with_classes_of_any_type_go_into_reports_and_patterns(
    fitted: EgoCNNClassifier, tmp_path: Path
) -> None:
    structures = fitted.explain(pd.DataFrame({"smiles": SMILES, "y": IS_ALCOHOL.astype(int)}))
    assert {structure.graph.target for structure in structures} == {0, 1}
    summary = write_explanations(structures, tmp_path, model="m", data="d", class_names=["0", "1"], figures=1)
    assert summary.scores["accuracy"] == fitted.score(SMILES, IS_ALCOHOL.astype(int))
    lines = [json.loads(line) for line in (tmp_path / "structures.jsonl").read_text().splitlines()]
    assert {line["true"] for line in lines} == {"0", "1"}
    assert all(isinstance(pattern.class_name, str) for pattern in find_patterns(structures))


def test_scikit_learn_takes_lists_and_tables_of_molecules_apart() -> None:
    for molecules in (SMILES, pd.Series(SMILES), pd.DataFrame({"smiles": SMILES})):
        scores = cross_val_score(EgoCNNClassifier(**SMALL), molecules, IS_ALCOHOL, cv=2, error_score="raise")
        assert scores.shape == (2,)


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("smiles", "message"),
    [
        (["CCO", "c1ccc"], "molecule 1: SMILES 'c1ccc' does not parse (unclosed ring)"),
        (pd.Series(["CCO", None]), "item 1 is nan and item 0 a SMILES; all must be of one kind"),
        ([Chem.MolFromSmiles("C"), None], "item 1 is None and item 0 an RDKit molecule; all must be of one kind"),
        ([Chem.MolFromSmiles("C"), Chem.Mol()], "molecule 1: a molecule without atoms"),
        ([Chem.MolFromSmiles("CN(C)(C)C", sanitize=False)], "molecule 0: RDKit refuses the molecule (Explicit valence"),
        ([], "no graphs are given"),
        (pd.DataFrame({"x": ["C"]}), "DataFrame: no column is called smiles; there are x; name one with smiles="),
        (
            pd.DataFrame({"smiles": ["C", "c1ccc"]}),
            "DataFrame, row 1: SMILES 'c1ccc' does not parse (unclosed ring); skip_invalid=True leaves such rows out",
        ),
        (pd.DataFrame({"smiles": []}), "DataFrame: has no rows"),
        (
            pd.DataFrame([["C", "N"]], columns=["my_smiles", "SMILES_2"]),
            "DataFrame: my_smiles, SMILES_2 could all be the column of SMILES; name one with smiles=",
        ),
        (pd.DataFrame([["C", "N"]], columns=["smiles", "smiles"]), "DataFrame: two columns are called 'smiles'"),
    ],
)
def test_molecules_that_cannot_be_read_are_refused_in_one_sentence(
    smiles: Any, message: str, fitted: EgoCNNClassifier
) -> None:
    for use in (egocnn.read, fitted.predict, fitted.predict_proba, fitted.explain):
        assert refusal(use, smiles).startswith(message)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 0], "y has shape (2,) for 24 graphs"),
        ([*IS_ALCOHOL[1:].astype(float), np.nan], "y[23] is nan: a target that is not known; leave such graphs out"),
        ([None, *IS_ALCOHOL[1:]], "y[0] is None: a target that is not known"),
        (["a", *[np.nan] * 23], "y[1] is nan: a target that is not known"),
        (pd.Series([pd.NA, *[1] * 23], dtype="Int64"), "y[0] is <NA>: a target that is not known"),
        ([1.0, np.inf] * 12, "y[1] is inf; a target must be finite"),
        ([1, "a"] * 12, "y[1] is a text ('a') and y[0] a number; all must be of one kind"),
        ([(1, 2)] * 24, "y has shape (24, 2) for 24 graphs"),
        (np.zeros((24, 1)), "y has shape (24, 1) for 24 graphs"),
        ([(1,), (1, 2)] * 12, "y must hold one target for each of 24 graphs, got [(1,), (1, 2), "),
        (["a", b"b"] * 12, "y[1] is b'b'; a target is a number, a text or a truth value"),
    ],
)
def test_targets_with_gaps_or_of_mixed_kinds_are_refused_in_one_sentence(y: Any, message: str) -> None:
    for kind in (EgoCNNClassifier, EgoCNNRegressor):
        assert refusal(kind(**SMALL).fit, SMILES, y).startswith(message)


def test_values_are_for_the_regressor_and_what_is_asked_for_must_be_there(fitted: EgoCNNClassifier) -> None:
    assert refusal(EgoCNNClassifier(**SMALL).fit, SMILES, np.arange(24) / 4) == (
        "y[1] is 0.25, which is a value and not a class; use EgoCNNRegressor"
    )
    with pytest.raises(MissingColumnError, match="DataFrame: no column or field is called 'toxic'"):
        EgoCNNClassifier(**SMALL).fit(pd.DataFrame({"smiles": SMILES}), "toxic")
    with pytest.raises(DataError, match=r"y has shape \(2,\) for 24 graphs"):
        fitted.score(SMILES, [0, 1])


def test_two_molecules_are_compared_for_the_same_class_in_any_form(fitted: EgoCNNClassifier) -> None:
    found = fitted.compare(*map(Chem.MolFromSmiles, ("CCCCC", "CCCCCO")))
    assert found.transformation == "[H]*>>*O"
    assert (found.first.explained, found.second.explained) == (1, 1)
    probabilities = fitted.predict_proba(["CCCCC", "CCCCCO"])[:, 1]
    assert found.predicted == pytest.approx(probabilities, abs=1e-5)
    assert fitted.compare("CCCCC", "CCCCCO", classes=0).predicted_change == pytest.approx(-found.predicted_change)
