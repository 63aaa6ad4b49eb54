"""Who imports whom, in all packages and in `dags`: imports inside functions count, too."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOTS = ("flink_client", "models", "pipelines", "spark", "testbeds", "plugins", "dags")
FROM_DAGS = ("airflow", "sluice_airflow", "sluice_pages", "pipelines", "models", "pendulum")


@pytest.fixture(scope="module")
def imports(root: Path) -> dict[str, set[str]]:
    """Modules that each module imports, as far as they are of this repository, by name."""
    files = {_module(root, path): path for name in ROOTS for path in (root / name).rglob("*.py")}
    return {name: {m for m in _imported(name, path, set(files)) if m != name} for name, path in files.items()}


def _module(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(part for part in parts[parts[0] == "plugins" :] if part != "__init__")


def _imported(name: str, path: Path, known: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            base = ".".join(package.split(".")[: -node.level + 1 or None]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield from (found for found in (inner if inner in known else origin,) if found in known)


def test_no_files_import_each_other(imports: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"these files import each other in a circle: {' <- '.join(error.args[1])}")


def test_dags_wire_what_plugins_and_pipelines_offer(root: Path, imports: dict[str, set[str]]) -> None:
    dags = {name for name in imports if name.startswith("dags.")}
    assert dags == {f"dags.{path.stem}" for path in (root / "dags").glob("*.py")}
    for name in dags:
        wrong = {m for m in imports[name] if m.partition(".")[0] not in FROM_DAGS or m.startswith("pipelines.cli")}
        assert not wrong, f"{name} imports {wrong}"
    importers = {name for name, found in imports.items() if found & dags}
    assert not importers, f"{importers} import dags"


def test_the_graph_sees_imports_of_every_kind(tmp_path: Path) -> None:
    module = tmp_path / "mine.py"
    module.write_text("import a.b\nfrom a import c\nfrom a.d import name\n\ndef f():\n    from . import e\n")
    assert set(_imported("pack.mine", module, {"a.b", "a.c", "a.d", "pack.e"})) == {"a.b", "a.c", "a.d", "pack.e"}
