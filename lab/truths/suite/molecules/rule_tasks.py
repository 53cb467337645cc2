"""Classes of molecules by a rule: as many that follow it as do not, the latter as hard to tell as the pool allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from lab.truths.suite.molecules.examples import molecule_example
from lab.truths.suite.molecules.pool import PooledMolecule, pooled_molecules
from lab.truths.suite.molecules.rules import AllOf, AnyOf, AtLeast, Once, Rule, Without
from lab.truths.suite.task import Example, Family, Sizes, SuiteTask, assign_parts


def draw_evenly(
    molecules: Sequence[PooledMolecule],
    kind: Callable[[PooledMolecule], object],
    count: int,
    random: np.random.Generator,
) -> list[PooledMolecule]:
    """So many molecules, in turn one of every kind until a kind has none left; fewer where the pool has fewer."""
    kinds: dict[object, list[PooledMolecule]] = {}
    for number in random.permutation(len(molecules)):
        kinds.setdefault(kind(molecules[number]), []).append(molecules[number])
    found: list[PooledMolecule] = []
    while kinds and len(found) < count:
        for name in list(kinds):
            found.append(kinds[name].pop())
            if not kinds[name]:
                del kinds[name]
    return found[:count]


def make_rule(rule: Rule) -> Callable[[Sizes, np.random.Generator, Path], list[Example]]:
    """Examples of the classes yes and no; a no without any group of the rule is one where nothing speaks."""

    def make(sizes: Sizes, random: np.random.Generator, folder: Path) -> list[Example]:
        molecules = pooled_molecules(folder)
        follow = [m for m in molecules if rule.holds(m.matches)]
        others = [m for m in molecules if not rule.holds(m.matches)]
        each = min(sizes.same_size // 2, len(follow), len(others))
        chosen = [draw_evenly(side, lambda m: rule.kind(m.matches), each, random) for side in (follow, others)]
        examples = [molecule_example(m, "yes", alternatives=tuple(rule.alternatives(m.matches))) for m in chosen[0]]
        examples += [
            molecule_example(m, "no", nothing=not any(m.matches(group) for group in rule.groups)) for m in chosen[1]
        ]
        return assign_parts(examples, sizes, random)

    return make


def _task(family: Family, name: str, what: str, rule: Rule) -> SuiteTask:
    return SuiteTask(name=name, family=family, what=what, make=make_rule(rule))


RULE_TASKS = (
    _task("and", "amide-and-amine", "an amide and a tertiary amine", AllOf(("amide", "tertiary amine"))),
    _task(
        "and",
        "sulfonamide-and-five-ring",
        "a sulfonamide and an aromatic ring of five",
        AllOf(("sulfonamide", "aromatic five-ring")),
    ),
    _task("and", "pyridine-and-fluorine", "a pyridine and fluorine", AllOf(("pyridine", "fluorine"))),
    _task(
        "and", "halogen-and-six-ring", "a halogen and a saturated ring of six", AllOf(("halogen", "saturated six-ring"))
    ),
    _task(
        "and",
        "amide-halogen-and-ether",
        "an amide, a halogen and an aryl ether",
        AllOf(("amide", "halogen", "aryl ether")),
    ),
    _task("or", "nitrile-or-nitro", "a nitrile or a nitro group", AnyOf(("nitrile", "nitro"))),
    _task("or", "acid-or-sulfonamide", "a carboxylic acid or a sulfonamide", AnyOf(("acid", "sulfonamide"))),
    _task("or", "furan-or-thiophene", "a furan or a thiophene ring", AnyOf(("furan", "thiophene"))),
    _task("not", "amide-not-halogen", "an amide and no halogen", Without("amide", "halogen")),
    _task("not", "alcohol-not-benzene", "an alcohol and no benzene ring", Without("alcohol", "benzene")),
    _task(
        "not",
        "five-ring-not-carbonyl",
        "an aromatic ring of five and no carbonyl",
        Without("aromatic five-ring", "carbonyl"),
    ),
    _task("count", "two-amides", "two amides or more", AtLeast("amide")),
    _task("count", "two-chlorines", "two chlorines or more", AtLeast("chlorine")),
    _task("count", "one-carbonyl", "exactly one carbonyl", Once("carbonyl")),
    _task("count", "one-aryl-ether", "exactly one aryl ether", Once("aryl ether")),
    _task(
        "ring",
        "fused-five-six",
        "an aromatic ring of five fused to one of six",
        AllOf(("fused five-six",), ("aromatic five-ring", "benzene")),
    ),
    _task(
        "ring",
        "fused-six-six",
        "two fused aromatic rings of six",
        AllOf(("fused six-six",), ("fused five-six", "benzene")),
    ),
    _task("ring", "cyclopropane", "a ring of three carbons", AllOf(("cyclopropane",), ("saturated six-ring",))),
    _task("group", "phenol", "a phenol, not just any OH", AllOf(("phenol",), ("alcohol", "aryl ether"))),
    _task("group", "ester", "an ester, neither acid nor amide", AllOf(("ester",), ("acid", "amide", "ketone"))),
)
