"""The rooms of the package: what it contains, and which module may import which."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.util import resolve_name

from tests.helpers import ROOT

FLOORS = (
    *("cli", "explorer", "plots snippets", "counterfactuals", "generation"),
    *("models", "sampling", "text errors"),
)
"""From the top down. Rooms on the same floor do not import each other."""

LEVEL = {room: -at for at, floor in enumerate(FLOORS) for room in floor.split()}
USERS = {
    "ipywidgets": {"explorer"},
    "anywidget": {"explorer"},
    "matplotlib": {"explorer", "plots"},
}
PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(ROOT.glob("sampling_lab/*/**/*.py"))
    + [ROOT / f"sampling_lab/{name}.py" for name in ("errors", "text")]
}


def imported(name: str) -> Iterator[str]:
    """Yield the full names that a module imports, inside functions too."""
    package = name.rpartition(".")[0]
    for node in ast.walk(ast.parse(PATHS[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            for full in (f"{base}.{alias.name}" for alias in node.names):
                known = (full, f"{full}.__init__", base, f"{base}.__init__")
                yield next((one for one in known if one in PATHS), full)


IMPORTS = {name: {*imported(name)} for name in PATHS}


def may_import(importer: str, other: str) -> bool:
    own, (package, *rest) = importer.split(".")[1], other.split(".")
    if package != "sampling_lab":
        return own in USERS.get(package, {own})
    room = (*rest, "__init__")[0]
    return room in (own, "__version__") or LEVEL.get(room, 0) < LEVEL[own]


def test_a_module_imports_only_from_its_own_room_and_from_lower_floors() -> None:
    imports = [(name, other) for name, others in IMPORTS.items() for other in others]
    assert [pair for pair in imports if not may_import(*pair)] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter(IMPORTS).prepare()  # it raises CycleError, which names them


def test_the_guide_for_contributors_draws_the_same_floors() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    diagram = guide.split("```text")[1].split("```")[0]
    lines = [line.split() for line in diagram.splitlines()]
    drawn = [line for line in lines if {*line[:1]} & {*LEVEL}]
    floors = [floor.split() for floor in FLOORS]
    assert [line[: len(floors[at])] for at, line in enumerate(drawn)] == floors


def test_the_top_level_contains_only_rooms() -> None:
    found = {path.name.removesuffix(".py") for path in ROOT.glob("sampling_lab/*")}
    assert found - {"__pycache__"} == {*LEVEL, "__init__", "__main__", "py.typed"}
