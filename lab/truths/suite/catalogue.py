"""All tasks of the suite by name."""

from __future__ import annotations

from egocnn.errors import ConfigError
from lab.truths.suite.molecules.rule_tasks import RULE_TASKS
from lab.truths.suite.molecules.value_tasks import VALUE_TASKS
from lab.truths.suite.motifs.labelled import LABEL_TASKS
from lab.truths.suite.motifs.published import PUBLISHED_MOTIFS
from lab.truths.suite.motifs.unlabelled import MOTIF_TASKS
from lab.truths.suite.motifs.values import MOTIF_VALUE_TASKS
from lab.truths.suite.named import NAMED_TASKS
from lab.truths.suite.task import SuiteTask

CATALOGUE: dict[str, SuiteTask] = {
    task.name: task
    for task in (
        *RULE_TASKS,
        *MOTIF_TASKS,
        *LABEL_TASKS,
        *VALUE_TASKS,
        *MOTIF_VALUE_TASKS,
        *NAMED_TASKS,
        *PUBLISHED_MOTIFS,
    )
}


def task_called(name: str) -> SuiteTask:
    """A task, or one line that says which there are."""
    if name not in CATALOGUE:
        raise ConfigError(f"no task is called {name!r}; there are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
