from pathlib import Path

import pytest

from egocnn.errors import DataError
from egocnn.show.report.folder import check_folder, file_name


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "..", "", "x" * 500, "<script>", "C6H14 #1", "\0"])
def test_no_name_of_a_graph_leaves_the_folder_or_is_refused_by_the_file_system(name: str, tmp_path: Path) -> None:
    path = tmp_path / file_name(name)
    path.touch()
    assert path.resolve().parent == tmp_path.resolve()


def test_a_new_folder_an_empty_one_and_an_earlier_report_may_be_written_to(tmp_path: Path) -> None:
    check_folder(tmp_path / "new" / "folder")
    check_folder(tmp_path)
    (tmp_path / "structures.jsonl").touch()
    (tmp_path / "index.html").touch()
    check_folder(tmp_path)
    with pytest.raises(DataError, match="holds no earlier report"):
        check_folder(tmp_path, "patterns.json")  # a report of another kind is not replaced


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="is a file"):
        check_folder(tmp_path / "file" / "report")
