"""Patterns -> a folder: one page to read, JSON and CSV for machines, a drawing of every fragment."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from egocnn.explain.patterns.record import HIGH_OR_LOW, LOWERS, RAISES, Pattern, chance, percent, times
from egocnn.files import write_json, write_text
from egocnn.show.patterns.pictures import draw_occurrence, draw_pattern

EXAMPLES_SHOWN = 3
COLUMNS = (
    "class",
    "name",
    "smiles",
    "smarts",
    "critical",
    "of_predicted",
    "in_class",
    "of_class",
    "in_others",
    "of_others",
    "lift",
    "p_value",
    "undecided",
    "significant",
)


def write_patterns(patterns: Sequence[Pattern], folder: Path, *, title: str) -> Path:
    """Write patterns.json, patterns.csv, figures/pattern-N.svg and index.html; returns the page's path."""
    drawings = [draw_pattern(pattern) for pattern in patterns]
    page = _page(patterns, drawings, title)
    for number, drawing in enumerate(drawings, start=1):
        write_text(_figure(folder, number), drawing)
    for stale in set((folder / "figures").glob("pattern-*.svg")) - {
        _figure(folder, n + 1) for n in range(len(drawings))
    }:
        stale.unlink()  # left by an earlier run that found more
    write_json(folder / "patterns.json", {"title": title, "patterns": [pattern.to_plain() for pattern in patterns]})
    write_text(folder / "patterns.csv", _table(patterns))
    write_text(folder / "index.html", page)
    return folder / "index.html"


def _figure(folder: Path, number: int) -> Path:
    return folder / "figures" / f"pattern-{number}.svg"


def _table(patterns: Sequence[Pattern]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(pattern.to_plain() for pattern in patterns)
    return text.getvalue()


def _page(patterns: Sequence[Pattern], drawings: Sequence[str], title: str) -> str:
    numbered = list(zip(range(1, len(patterns) + 1), patterns, drawings, strict=True))
    classes = [(name, list(some)) for name, some in groupby(numbered, key=lambda item: item[1].class_name)]
    links = "".join(
        f'<a href="#class-{i}">{escape(_heading(name))} <span>{sum(p.is_significant for _, p, _ in some)}</span></a>'
        for i, (name, some) in enumerate(classes, start=1)
    )
    body = "".join(_section(i, name, some) for i, (name, some) in enumerate(classes, start=1))
    if not patterns:
        body = "<p>No fragment recurs in as many critical structures as was asked for.</p>"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>What recurs in the parts of graphs that made the model predict a class; what tells most comes first.</p>
<nav>{links}</nav>
</header>
<main>
{body}
</main>
<footer>{_method(patterns)}</footer>
</body>
</html>
"""


def _section(number: int, name: str, items: Sequence[tuple[int, Pattern, str]]) -> str:
    first = items[0][1]
    telling = [item for item in items if item[1].is_significant]
    rest = [item for item in items if not item[1].is_significant]
    cards = "".join(_card(*item) for item in telling)
    if not telling:
        cards = '<p class="none">Nothing that recurs here is reliably commoner in this class than elsewhere.</p>'
    others = f"<details><summary>Not reliably commoner here, though it recurs: {len(rest)}</summary>"
    others = f"{others}<ul>{''.join(_line(*item) for item in rest)}</ul></details>" if rest else ""
    return (
        f'<section id="class-{number}"><h2>{escape(_heading(name))}</h2>'
        f'<p class="size">{first.of_class:,} graphs {escape(_meaning(name))}, {first.of_others:,} others; '
        f"{first.of_predicted:,} explained so</p>{cards}{others}</section>\n"
    )


def _heading(name: str) -> str:
    return _capital(name) if name in HIGH_OR_LOW else f"Class {name}"


def _meaning(name: str) -> str:
    return {RAISES: "above the median", LOWERS: "up to the median"}.get(name, "of this class")


def _card(number: int, pattern: Pattern, drawing: str) -> str:
    shown = pattern.examples[:EXAMPLES_SHOWN]
    examples = "".join(
        f'<figure><div class="paper">{draw_occurrence(example)}</div>'
        f"<figcaption>{escape(example.graph.name)}</figcaption></figure>"
        for example in shown
    )
    given_up = f" · {pattern.undecided:,} undecided graphs counted against it" if pattern.undecided else ""
    smiles = f"<code>{escape(pattern.smiles)}</code>" if pattern.smiles else ""
    return f"""<article id="pattern-{number}">
<div class="summary">
<div class="paper fragment">{drawing}</div>
<div class="facts">
<h3>{escape(_capital(pattern.name))}</h3>{smiles}
<table>
{_bar("in this class", pattern.in_class, pattern.of_class, "for")}
{_bar("in the others", pattern.in_others, pattern.of_others, "against")}
{_bar("critical", pattern.critical, pattern.of_predicted, "critical")}
</table>
<p class="numbers">lift <b>{times(pattern.lift)}</b> · <b>{escape(chance(pattern.p_value))}</b>{given_up}</p>
</div>
</div>
<div class="examples">{examples}</div>
</article>
"""


def _bar(what: str, count: int, of: int, kind: str) -> str:
    share = count / max(of, 1)
    return (
        f'<tr><th>{what}</th><td class="bar"><i class="{kind}" style="width:{100 * share:.1f}%"></i></td>'
        f'<td class="share">{escape(percent(share))}</td><td class="count">{count:,} of {of:,}</td></tr>'
    )


def _line(number: int, pattern: Pattern, _: str) -> str:
    return f'<li id="pattern-{number}">{escape(pattern.sentence)}</li>'


def _capital(text: str) -> str:
    """First letter in upper case, unless the word is a formula already."""
    return text[:1].upper() + text[1:] if text[:1].isalpha() and text[1:2].islower() else text


def _method(patterns: Sequence[Pattern]) -> str:
    tests = f"{patterns[0].tests:,} fragments tried" if patterns else "number of fragments tried"
    return (
        "<p><b>In this class, in the others</b>: graphs that contain the fragment, critical or not, by their true "
        "class where it is known. <b>Critical</b>: graphs predicted as the class where the fragment is part of what "
        "made the model say so. <b>Lift</b>: how many times likelier the class is once the fragment is there. "
        "<b>p</b>: chance of so many in the class by luck (hypergeometric, one-sided), multiplied by the "
        f"{tests} (Bonferroni). Fragments with p &lt; 0.01 are shown, by graphs in which they are critical × log₂ "
        "lift. An oxygen that hangs on a critical N, S or P alone counts with it, so that NO2 is one thing. In "
        "drawings of molecules, carbon's hydrogens do not count, dashed bonds are aromatic, and Ar is an atom "
        "of an aromatic ring.</p>"
    )


STYLE = """
:root { --ink: #1d232b; --soft: #5b6672; --line: #dde2e7; --page: #f6f7f9; --card: #ffffff; --for: #d55e00;
  --against: #0072b2; --track: #eceff2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --soft: #9aa5b1; --line: #323a43; --page: #14181d; --card: #1c2229; --for: #e8772b;
    --against: #4aa3d8; --track: #2b323a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", sans-serif; }
header, main, footer { max-width: 1080px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 40px; }
h1 { margin: 0 0 6px; font-size: 28px; line-height: 1.2; letter-spacing: -0.01em; }
h2 { margin: 44px 0 2px; font-size: 21px; }
h3 { margin: 0; font-size: 17px; line-height: 1.3; overflow-wrap: anywhere; }
header p, .size, footer, .none, figcaption, .numbers { color: var(--soft); }
header p, .size { margin: 0 0 14px; }
nav { display: flex; flex-wrap: wrap; gap: 8px; }
nav a { padding: 3px 12px; border: 1px solid var(--line); border-radius: 99px; background: var(--card);
  color: inherit; text-decoration: none; }
nav span { color: var(--soft); }
article { margin: 14px 0; padding: 18px; border: 1px solid var(--line); border-radius: 12px; background: var(--card); }
.summary { display: grid; grid-template-columns: 240px minmax(0, 1fr); gap: 22px; align-items: center; }
.paper { background: #ffffff; border-radius: 8px; border: 1px solid var(--line); overflow: hidden; }
.paper svg { display: block; width: 100%; height: auto; }
code { font: 13px ui-monospace, monospace; color: var(--soft); overflow-wrap: anywhere; }
table { width: 100%; margin-top: 10px; border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th { width: 104px; padding: 3px 0; text-align: left; font-weight: 400; color: var(--soft); }
.bar { position: relative; background: linear-gradient(var(--track), var(--track)) center / 100% 10px no-repeat; }
.bar i { position: absolute; left: 0; top: 50%; height: 10px; margin-top: -5px; }
.for { background: var(--for); } .against { background: var(--against); }
.critical { background: repeating-linear-gradient(135deg, var(--for) 0 3px, transparent 3px 6px); }
.share { width: 84px; text-align: right; font-weight: 600; }
.count { width: 128px; text-align: right; color: var(--soft); }
.numbers { margin: 8px 0 0; font-size: 14px; } .numbers b { color: var(--ink); }
.examples { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 14px; margin-top: 16px; }
figure { margin: 0; } figcaption { margin-top: 4px; font-size: 13px; overflow-wrap: anywhere; }
details { margin: 14px 0; } summary { cursor: pointer; color: var(--soft); } li { margin: 3px 0; }
footer { margin-top: 48px; padding-bottom: 48px; font-size: 13px; }
@media (max-width: 720px) {
  .summary, .examples { grid-template-columns: 1fr; } .count { display: none; } th { width: 88px; } }
@media print { article { break-inside: avoid; } }
"""
