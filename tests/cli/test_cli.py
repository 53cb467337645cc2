from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import egocnn
from egocnn.cli import main
from tests.support.commands import SHORT, Run, rows
from tests.support.tiny import ALCOHOLS, FLAGS, SMILES_TABLE, alcohols, names_in, write_table

ROOT = Path(egocnn.__file__).parent.parent
COMMANDS = [
    *("demo", "info", "train", "predict", "explain", "patterns", "crossval", "scale-free", "reproduce", "bench"),
    *("serve", "export", "prepare", "sweep", "completion"),
]


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
for words in ["--help"], ["--version"], *([name, help] for name in {COMMANDS} for help in ("--help", "--help-all")):
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
    for words in ("usage: egocnn train", "usage: egocnn predict", "--learning-rate X", "egocnn 0.1.0"):
        assert words in done.stdout


def test_the_list_of_commands_is_whole(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert all(f"\n    {name}" in out for name in COMMANDS)


def test_help_is_readable_where_only_ascii_is() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    done = script("-m", "egocnn", "train", "--help", env=environment)
    assert done.returncode == 0, done.stderr


def test_the_module_is_the_command_and_tells_its_version() -> None:
    done = script("-m", "egocnn", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"egocnn {egocnn.__version__}\n", "")


# ── info ──────────────────────────────────────────────────────────────────────────────────────────


def test_info_prints_facts_and_notes_for_people_and_one_object_for_machines(run: Run) -> None:
    code, out, err = run("info", ALCOHOLS)
    assert (code, err) == (0, "")
    assert "graphs          32\n" in out
    assert "class counts    alkane: 16, alcohol: 16\n" in out
    code, out, err = run("info", ALCOHOLS, "--json", "--limit", 5)
    assert (code, err, out.count("\n")) == (0, "", 1)
    facts = json.loads(out)
    assert facts["graphs"] == 5
    assert facts["avg_nodes"] == pytest.approx(np.mean([graph.n_nodes for graph in alcohols()[:5]]))


def test_output_that_nobody_reads_is_no_error() -> None:
    command = [sys.executable, "-m", "egocnn", "info", ALCOHOLS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


# ── train ─────────────────────────────────────────────────────────────────────────────────────────


def test_train_with_json_prints_the_metrics_alone_and_progress_elsewhere(run: Run, tmp_path: Path) -> None:
    code, out, err = run("train", ALCOHOLS, "-o", tmp_path / "run", *FLAGS, "--epochs", 2, "--json")
    assert code == 0
    assert out.count("\n") == 1
    assert json.loads(out) == json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert err.count("\n") == 2
    assert names_in(tmp_path / "run") == [
        "config.json",
        "history.csv",
        "metrics.json",
        "model.safetensors",
        "settings.toml",
    ]


def test_train_tells_people_the_scores_and_where_the_run_is(run: Run, tmp_path: Path) -> None:
    code, out, err = run("train", ALCOHOLS, "-o", tmp_path / "run", *SHORT)
    assert (code, err) == (0, "")
    assert "test accuracy" in out
    assert "(20 graphs)" in out
    assert f"run folder: {tmp_path / 'run'}" in out


def test_what_was_typed_is_in_the_config(alcohol_run: Path) -> None:
    config = json.loads((alcohol_run / "config.json").read_text())
    assert config["data"] == ALCOHOLS
    assert config["model"]["k"] == 4
    assert config["train"]["epochs"] == 2
    assert config["read"]["task"] == "auto"


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
run = sys.argv[1]
assert main(["train", {ALCOHOLS!r}, "-o", run, *{SHORT}]) == 0
assert main(["predict", run, {ALCOHOLS!r}, "-o", run + "/predictions.csv"]) == 0
assert main(["train", {ALCOHOLS!r}, "-o", run + "2", "--tensorboard"]) == 2
assert main(["info", run + "/molecules.csv"]) == 2
"""
    (tmp_path / "run").mkdir()
    write_table(tmp_path / "run")
    done = script("-c", code, str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert len(rows(tmp_path / "run" / "predictions.csv")) == 32
    assert done.stderr.splitlines() == [
        'egocnn: tensorboard is not installed; type: pip install "egocnn[tensorboard]"',
        'egocnn: rdkit is not installed; type: pip install "egocnn[molecules]"',
    ]
    assert not (tmp_path / "run2").exists()


# ── predict ───────────────────────────────────────────────────────────────────────────────────────


def test_predict_writes_the_promised_columns_for_one_part_of_a_table(
    run: Run, smiles_run: Path, tmp_path: Path
) -> None:
    table, out = smiles_run.parent / "molecules.csv", tmp_path / "p.csv"
    code, printed, err = run("predict", smiles_run, table, "--split", "split=test", "-o", out)
    assert (code, err) == (0, "")
    assert "4 predictions in" in printed
    assert out.read_text().startswith("name,predicted,probability,true\n")
    predicted = rows(out)
    assert [row["name"] for row in predicted] == ["pentane", 'iso, "tert"', "=1+1", "isopropanol"]
    assert [row["true"] for row in predicted] == ["alkane", "alkane", "alcohol", "alcohol"]
    assert all(0.5 <= float(row["probability"]) <= 1 for row in predicted)

    code, printed, _ = run("predict", smiles_run, table, "--split", "split=test", "--limit", 3, "-o", out, "--json")
    assert code == 0
    assert printed.count("\n") == 1
    result = json.loads(printed)
    assert rows(out) == predicted[:3]
    assert result["graphs"] == 3
    assert result["accuracy"] == np.mean([row["predicted"] == row["true"] for row in predicted[:3]])
    assert result["file"] == str(out)

    run("predict", smiles_run, table, "-o", out)
    assert len(rows(out)) == 12


def test_the_command_line_and_python_say_the_same(run: Run, smiles_run: Path, tmp_path: Path) -> None:
    table = smiles_run.parent / "molecules.csv"
    run("predict", smiles_run, table, "-o", tmp_path / "p.csv")
    model = egocnn.load(smiles_run)
    graphs = egocnn.read(table)
    assert [row["predicted"] for row in rows(tmp_path / "p.csv")] == model.predict(graphs).tolist()
    probability = [float(row["probability"]) for row in rows(tmp_path / "p.csv")]
    assert probability == model.predict_proba(graphs).max(axis=1).tolist()


def test_new_data_may_lack_the_target_and_have_labels_never_seen(run: Run, smiles_run: Path, tmp_path: Path) -> None:
    new = write_table(tmp_path, "smiles\nCCBr\nC#N\nOCC\n", "new.csv")
    code, printed, err = run("predict", smiles_run, new, "-o", tmp_path / "p.csv", "--json")
    assert (code, err) == (0, "")
    assert json.loads(printed).keys() == {"graphs", "file"}
    assert [row["true"] for row in rows(tmp_path / "p.csv")] == ["", "", ""]
    assert [row["name"] for row in rows(tmp_path / "p.csv")] == ["1", "2", "3"]


def test_new_data_may_have_classes_never_seen_which_count_as_missed(run: Run, smiles_run: Path, tmp_path: Path) -> None:
    new = write_table(tmp_path, "smiles,label\nCOC,ether\nCCOC,ether\nCCC,\n", "new.csv")
    code, printed, _ = run("predict", smiles_run, new, "-o", tmp_path / "p.csv", "--json")
    assert code == 0
    assert json.loads(printed)["accuracy"] == 0
    assert [row["true"] for row in rows(tmp_path / "p.csv")] == ["ether", "ether", ""]


def test_a_model_reads_new_data_as_it_was_trained(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    table = write_table(tmp_path, SMILES_TABLE.replace("smiles,label", "mol,kind"))
    words = ["--smiles", "mol", "--target", "kind", "--hydrogens", "--split", "split"]
    assert run("train", table, *words, "-o", tmp_path / "run", *SHORT)[0] == 0
    assert run("predict", tmp_path / "run", table, "-o", tmp_path / "p.csv")[0] == 0
    graphs = egocnn.read(table, smiles="mol", target="kind", hydrogens=True)
    assert "H" in graphs.node_label_names
    probability = [float(row["probability"]) for row in rows(tmp_path / "p.csv")]
    assert probability == egocnn.load(tmp_path / "run").predict_proba(graphs).max(axis=1).tolist()

    # a column of words that has nothing to do with the target is not taken for the truth
    new = write_table(tmp_path, "id,mol,label\na,CC,nice\nb,CCO,nasty\n", "new.csv")
    code, printed, err = run("predict", tmp_path / "run", new, "-o", tmp_path / "p.csv", "--json")
    assert (code, err) == (0, "")
    assert json.loads(printed).keys() == {"graphs", "file"}
    assert [(row["name"], row["true"]) for row in rows(tmp_path / "p.csv")] == [("a", ""), ("b", "")]

    code, _, err = run("predict", tmp_path / "run", new, "--target", "kind", "-o", tmp_path / "p.csv")
    assert code == 2
    assert "no column or field is called 'kind'" in err

    # said here, it counts more than what was said in training
    assert run("predict", tmp_path / "run", table, "--no-hydrogens", "-o", tmp_path / "bare.csv")[0] == 0
    bare = egocnn.read(table, smiles="mol", target="kind")
    probability = [float(row["probability"]) for row in rows(tmp_path / "bare.csv")]
    assert probability == egocnn.load(tmp_path / "run").predict_proba(bare).max(axis=1).tolist()


def test_numbers_that_were_classes_are_classes_in_new_data_too(run: Run, tmp_path: Path) -> None:
    """Three rows with three different numbers would be values to predict, had the model not been told otherwise."""
    pytest.importorskip("rdkit")
    lines = [f"{'C' * size},{size % 3}" for size in range(1, 19)]
    table = write_table(tmp_path, "\n".join(["smiles,y", *lines]))
    assert run("train", table, "-o", tmp_path / "run", *SHORT)[0] == 0
    new = write_table(tmp_path, "smiles,y\nCCO,0\nCCCO,1\nCCN,2\n", "new.csv")
    code, printed, err = run("predict", tmp_path / "run", new, "-o", tmp_path / "p.csv", "--json")
    assert (code, err) == (0, "")
    assert "accuracy" in json.loads(printed)
    assert [row["true"] for row in rows(tmp_path / "p.csv")] == ["0", "1", "2"]
    assert {row["predicted"] for row in rows(tmp_path / "p.csv")} <= {"0", "1", "2"}


def test_a_regression_trains_and_predicts_also_where_some_values_are_missing(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    lines = [f"{'C' * (size % 9 + 1)}O,{size % 2}" for size in range(20)]
    table = write_table(tmp_path, "\n".join(["smiles,y", *lines]))
    code, printed, _ = run("train", table, "--task", "regression", "-o", tmp_path / "run", *SHORT, "--json")
    assert code == 0
    metrics = json.loads(printed)
    assert metrics["task"] == "regression"
    assert metrics.keys() >= {"validation_r2", "test_r2", "test_mean_absolute_error"}
    new = write_table(tmp_path, "smiles,y\nCCO,1\nCCCO,\nCCN,0\n", "new.csv")
    code, printed, err = run("predict", tmp_path / "run", new, "-o", tmp_path / "p.csv", "--json")
    assert (code, err) == (0, "")
    assert json.loads(printed).keys() >= {"r2", "mean_absolute_error"}
    assert [row["true"] for row in rows(tmp_path / "p.csv")] == ["1.0", "", "0.0"]
    assert all(row["probability"] == "" and float(row["predicted"]) < 5 for row in rows(tmp_path / "p.csv"))


def test_predictions_replace_the_file_of_before_and_leave_nothing_else(
    run: Run, alcohol_run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new folder" / "p.csv"
    for _ in range(2):
        assert run("predict", alcohol_run, ALCOHOLS, "-o", out)[0] == 0
    assert names_in(out.parent) == ["p.csv"]
