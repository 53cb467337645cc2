import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import egocnn
from egocnn.cli import main
from egocnn.cli.commands import COMMANDS
from tests.support.commands import SHORT, Run, check_refused, printed, rows, told
from tests.support.samples import sure
from tests.support.tiny import ALCOHOLS, COMPLETE, FLAGS, SMILES_TABLE, alcohols, names_in, write_table

ROOT = Path(egocnn.__file__).parent.parent


def script(*words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=ROOT, check=False, **settings)


@pytest.fixture(scope="module")
def smiles_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on the table, by its own split."""
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("smiles")
    table = write_table(folder)
    assert main(["train", str(table), "--split", "split", "-o", str(folder / "run"), *SHORT]) == 0
    return folder / "run"


# ── help and version ──────────────────────────────────────────────────────────────────────────────


def test_help_of_every_command_is_there_at_once_without_torch_or_numpy() -> None:
    code = f"""
import sys
from egocnn.cli import main
from egocnn.cli.commands import COMMANDS
for words in ["--help"], ["--version"], *([name, all] for name in {[*COMMANDS]} for all in ("--help", "--help-all")):
    try:
        main(words)
    except SystemExit as end:
        assert end.code == 0, words
heavy = [name for name in ("torch", "numpy", "sklearn", "rich", "rdkit", "safetensors") if name in sys.modules]
print("imported:", heavy)
"""
    done = script("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("imported: []\n")
    assert all(f"\n    {name}" in done.stdout for name in COMMANDS)
    for words in ("usage: egocnn train", "usage: egocnn predict", "--learning-rate X", "egocnn 0.1.0"):
        assert words in done.stdout


def test_a_prediction_imports_neither_the_compiler_of_torch_nor_what_fits_laws(
    smiles_run: Path, tmp_path: Path
) -> None:
    """Each takes a processor as long as some thousand molecules do, in every process of --jobs."""
    words = ["predict", str(smiles_run), "CCO", "-o", str(tmp_path / "out.csv"), "--quiet"]
    code = f"""
import sys
from egocnn.cli import main
assert main({words}) == 0
print("imported:", [name for name in ("torch._dynamo", "sympy", "scipy.optimize") if name in sys.modules])
"""
    done = script("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("imported: []\n")


def test_the_module_is_the_command_and_its_help_is_readable_where_only_ascii_is() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    done = script("-m", "egocnn", "train", "--help", env=environment)
    assert done.returncode == 0, done.stderr


# ── info ──────────────────────────────────────────────────────────────────────────────────────────


def test_info_prints_facts_and_notes_for_people_and_one_object_for_machines(run: Run) -> None:
    text = printed(run, "info", ALCOHOLS)
    assert "graphs          32\n" in text
    assert "class counts    alkane: 16, alcohol: 16\n" in text
    facts = json.loads(printed(run, "info", ALCOHOLS, "--json", "--limit", 5))
    assert facts["graphs"] == 5
    assert facts["avg_nodes"] == pytest.approx(np.mean([graph.n_nodes for graph in alcohols()[:5]]))


def test_output_that_nobody_reads_is_no_error() -> None:
    command = [sys.executable, "-m", "egocnn", "info", ALCOHOLS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        sure(process.stdout).close()
        assert sure(process.stderr).read() == b""
    assert process.returncode == 0


# ── train ─────────────────────────────────────────────────────────────────────────────────────────


def test_train_prints_the_metrics_for_machines_or_the_scores_for_people_and_progress_elsewhere(
    run: Run, tmp_path: Path
) -> None:
    words = ("train", ALCOHOLS, "-o", tmp_path / "run", *FLAGS, "--epochs", 2)
    code, out, err = run(*words, "--json")
    assert (code, out.count("\n"), err.count("\n")) == (0, 1, 2)
    assert json.loads(out) == json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert names_in(tmp_path / "run") == COMPLETE
    text = told(run, *words, "--overwrite")
    for said in ("test accuracy", "(20 molecules)", f"run folder: {tmp_path / 'run'}"):
        assert said in text


def test_training_needs_no_more_than_torch_numpy_safetensors_and_scikit_learn(tmp_path: Path) -> None:
    blocked = ("rich", "rdkit", "networkx", "matplotlib", "torch_geometric", "pandas", "tensorboard")
    code = f"""
import sys
from importlib.machinery import PathFinder

class Few:
    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in {blocked} else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Few() if finder is PathFinder else finder for finder in sys.meta_path]
from egocnn.cli import main
from egocnn.cli.commands import COMMANDS
run = sys.argv[1]
assert main(["train", {ALCOHOLS!r}, "-o", run, *{SHORT}]) == 0
assert main(["predict", run, {ALCOHOLS!r}, "-o", run + ".csv"]) == 0
assert main(["train", {ALCOHOLS!r}, "-o", run + "2", "--tensorboard"]) == 2
assert main(["info", run + "/molecules.csv"]) == 2
import egocnn.interop.pyg  # which imports PyTorch Geometric when it is needed
"""
    (tmp_path / "run").mkdir()
    write_table(tmp_path / "run")
    done = script("-c", code, str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert len(rows(tmp_path / "run.csv")) == 32
    assert done.stderr.splitlines() == [
        'egocnn: tensorboard is not installed; type: pip install "egocnn[tensorboard]"',
        'egocnn: rdkit is not installed; type: pip install "egocnn[molecules]"',
    ]
    assert not (tmp_path / "run2").exists()


# ── predict ───────────────────────────────────────────────────────────────────────────────────────


def predict(run: Run, model: Path, data: Path, folder: Path, *words: object) -> tuple[Any, list[dict[str, str]]]:
    """What the command prints for machines, and the rows that it writes."""
    result = printed(run, "predict", model, data, "-o", folder / "p.csv", "--json", *words)
    assert result.count("\n") == 1
    return json.loads(result), rows(folder / "p.csv")


def column(table: list[dict[str, str]], name: str) -> list[str]:
    return [row[name] for row in table]


def six_digits(values: NDArray[Any]) -> list[float]:
    """As a CSV has them; other formats have every digit."""
    return [float(f"{value:.6g}") for value in values.tolist()]


def probabilities(table: list[dict[str, str]]) -> list[float]:
    return [float(row["probability"]) for row in table]


def test_predict_writes_the_promised_columns_for_one_part_of_a_table(
    run: Run, smiles_run: Path, tmp_path: Path
) -> None:
    table, out = smiles_run.parent / "molecules.csv", tmp_path / "p.csv"
    assert "4 predictions in" in printed(run, "predict", smiles_run, table, "--split", "split=test", "-o", out)
    head = "name,smiles,label,split,predicted,probability,p_alcohol,p_alkane,true,error"
    assert out.read_text().splitlines()[0] == head
    predicted = rows(out)
    assert column(predicted, "name") == ["pentane", 'iso, "tert"', "'=1+1", "isopropanol"]
    assert column(predicted, "true") == ["alkane", "alkane", "alcohol", "alcohol"]
    assert all(0.5 <= each <= 1 for each in probabilities(predicted))
    result, first = predict(run, smiles_run, table, tmp_path, "--split", "split=test", "--limit", 3)
    assert first == predicted[:3]
    accuracy = np.mean([row["predicted"] == row["true"] for row in first])
    assert (result["graphs"], result["accuracy"], result["file"]) == (3, accuracy, str(out))


def test_the_command_line_and_python_say_the_same(run: Run, smiles_run: Path, tmp_path: Path) -> None:
    table = smiles_run.parent / "molecules.csv"
    _, found = predict(run, smiles_run, table, tmp_path)
    model, graphs = egocnn.load(smiles_run), egocnn.read(table)
    assert column(found, "predicted") == model.predict(graphs).tolist()
    assert probabilities(found) == six_digits(model.predict_proba(graphs).max(axis=1))


def test_a_molecule_too_long_for_the_name_of_a_file_is_data_all_the_same(
    run: Run, smiles_run: Path, tmp_path: Path
) -> None:
    peptide = "C" * 300
    assert "300" in run("info", peptide)[1]
    for words in (("predict", smiles_run), ("explain", smiles_run), ("prepare",)):
        out = tmp_path / ("one.csv" if words[0] == "predict" else words[0])
        assert run(*words, peptide, "-o", out)[0] == 0
        assert out.exists()


def test_new_data_may_lack_the_target_and_have_labels_and_classes_never_seen(
    run: Run, smiles_run: Path, tmp_path: Path
) -> None:
    result, found = predict(run, smiles_run, write_table(tmp_path, "smiles\nCCBr\nC#N\nOCC\n"), tmp_path)
    assert result.keys() == {"graphs", "failed", "file"}
    assert [(row["name"], row["true"]) for row in found] == [("1", ""), ("2", ""), ("3", "")]
    result, found = predict(
        run, smiles_run, write_table(tmp_path, "smiles,label\nCOC,ether\nCCC,\nCO,alcohol\n"), tmp_path
    )
    assert result["accuracy"] <= 0.5  # a class that the model does not know is missed
    assert column(found, "true") == ["ether", "", "alcohol"]


def test_graphs_of_other_classes_than_the_models_are_predicted_with_a_word_about_their_scores(
    run: Run, smiles_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result, _ = predict(run, smiles_run, write_table(tmp_path, "smiles,label\nCOC,0\nCCC,1\n"), tmp_path)
    assert result["accuracy"] == 0
    assert caplog.messages == ["no class of these graphs is one of the model's (alcohol, alkane): all count as missed"]


def test_a_model_reads_new_data_as_it_was_trained(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    table, model = write_table(tmp_path, SMILES_TABLE.replace("smiles,label", "mol,kind")), tmp_path / "run"
    words = ["--smiles", "mol", "--target", "kind", "--hydrogens", "--limit", 10]
    printed(run, "train", table, *words, "-o", model, *SHORT)
    for typed, hydrogens in (((), True), (("--no-hydrogens",), False)):  # what is typed counts more
        graphs = egocnn.read(table, smiles="mol", target="kind", hydrogens=hydrogens)
        assert ("H" in graphs.node_label_names) == hydrogens
        wanted = six_digits(egocnn.load(model).predict_proba(graphs).max(axis=1))
        for more in ((), ("--config", model / "settings.toml")):  # which says the same once more
            assert probabilities(predict(run, model, table, tmp_path, *more, *typed)[1]) == wanted

    # a column of words that has nothing to do with the target is not taken for the truth
    new = write_table(tmp_path, "id,mol,label\na,CC,nice\nb,CCO,nasty\n", "new.csv")
    result, found = predict(run, model, new, tmp_path)
    assert result.keys() == {"graphs", "failed", "file"}
    assert [(row["name"], row["true"]) for row in found] == [("a", ""), ("b", "")]
    refused = "no column or field is called 'kind'"
    check_refused(run, refused, "predict", model, new, "--target", "kind", "-o", tmp_path / "p.csv")


def test_numbers_that_were_classes_are_classes_in_new_data_too(run: Run, tmp_path: Path) -> None:
    """Three rows with three different numbers would be values to predict, had the model not been told otherwise."""
    pytest.importorskip("rdkit")
    table = write_table(tmp_path, "\n".join(["smiles,y", *(f"{'C' * size},{size % 3}" for size in range(1, 19))]))
    printed(run, "train", table, "-o", tmp_path / "run", *SHORT)
    new = write_table(tmp_path, "smiles,y\nCCO,0\nCCCO,1\nCCN,2\n", "new.csv")
    result, found = predict(run, tmp_path / "run", new, tmp_path)
    assert "accuracy" in result
    assert column(found, "true") == ["0", "1", "2"]
    assert set(column(found, "predicted")) <= {"0", "1", "2"}


def test_a_regression_trains_and_predicts_also_where_some_values_are_missing(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    lines = [f"{'C' * (size % 9 + 1)}O,{size % 2}" for size in range(20)]
    table = write_table(tmp_path, "\n".join(["smiles,y", *lines]))
    words = ("train", table, "--task", "regression", "-o", tmp_path / "run", *SHORT, "--json")
    metrics = json.loads(printed(run, *words))
    assert metrics["task"] == "regression"
    assert metrics.keys() >= {"validation_r2", "test_r2", "test_rmse", "test_mae", "test_spearman"}
    new = write_table(tmp_path, "smiles,y\nCCO,1\nCCCO,\nCCN,0\n", "new.csv")
    result, found = predict(run, tmp_path / "run", new, tmp_path)
    assert result.keys() >= {"r2", "rmse", "mae", "spearman"}
    assert column(found, "true") == ["1.0", "", "0.0"]
    assert all("probability" not in row and float(row["predicted"]) < 5 for row in found)
