"""The layout of the source: sizes of packages, files and functions, and imports that hide a cycle."""

import ast
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import borelli

PACKAGE = Path(borelli.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_MODULES = 20
MAX_FILE_LINES = 600
MAX_MEDIAN_LINES = 170
MAX_FUNCTION_LINES = 90
ENTRY_POINTS = {"__init__", "__main__", "cli", "demo", "installation_check", "errors"}


def module_name(file: Path) -> str:
    parts = ["borelli", *file.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): ast.parse(file.read_text()) for file in FILES}


def imported_modules(statement: ast.stmt) -> Iterator[str]:
    """Yield the modules of this package that an import statement loads."""
    if isinstance(statement, ast.Import):
        names = [alias.name for alias in statement.names]
    elif isinstance(statement, ast.ImportFrom) and statement.module:
        names = [statement.module, *(f"{statement.module}.{alias.name}" for alias in statement.names)]
    else:
        names = []
    yield from (name for name in names if name in MODULES)


def import_statements(tree: ast.AST, in_functions: bool) -> Iterator[ast.stmt]:
    """Yield the imports that run when a module is loaded, or those inside its functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if in_functions:
                yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom))
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if not in_functions:
                yield node
        else:
            yield from import_statements(node, in_functions)


def loads(name: str, in_functions: bool = False) -> set[str]:
    return {found for node in import_statements(MODULES[name], in_functions) for found in imported_modules(node)}


LOADED = {name: loads(name) for name in MODULES}


def reachable(start: str) -> set[str]:
    """Return all modules that are loaded with one."""
    found, waiting = set[str](), [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += LOADED[name]
    return found


def hidden_cycles() -> list[str]:
    return [
        f"{name} -> {inner}" for name in MODULES for inner in loads(name, in_functions=True) if name in reachable(inner)
    ]


def test_no_import_inside_a_function_hides_a_cycle():
    assert hidden_cycles() == []


def test_packages_are_small():
    modules = Counter(file.parent for file in FILES if file.name != "__init__.py")
    assert {str(package): count for package, count in modules.items() if count > MAX_MODULES} == {}


def test_top_level_has_only_entry_points():
    assert {file.stem for file in PACKAGE.glob("*.py")} == ENTRY_POINTS


def test_files_are_short():
    lines = {file: len(file.read_text().splitlines()) for file in FILES}
    assert [str(file) for file, count in lines.items() if count > MAX_FILE_LINES] == []
    assert statistics.median(lines.values()) <= MAX_MEDIAN_LINES


def function_lines(node: ast.FunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    text = ast.get_docstring(node, clean=False)
    return node.end_lineno - node.lineno + 1 - (0 if text is None else text.count("\n") + 1)


def test_functions_are_short():
    functions = {
        f"{name}.{node.name}": function_lines(node)
        for name, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: lines for name, lines in functions.items() if lines > MAX_FUNCTION_LINES} == {}
