"""Expressions given as text: arithmetic and functions of names, parsed with `ast` and never executed as Python."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from borelli.errors import SettingsError, unknown_name
from borelli.optimal.casadi_import import ca
from borelli.optimal.namespace import Namespace
from borelli.optimal.transcription.phase_view import PhaseView

MAX_CHARACTERS = 2000
"""Length of an expression."""
MAX_PARTS = 500
"""Operators, numbers and names of an expression."""
MAX_DEPTH = 50
"""Nesting of an expression."""
OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
SIGNS: dict[type, Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
CONSTANTS = {"pi": math.pi}
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    **{name: (getattr(ca, name), 1) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")},
    **{name: (getattr(ca, name), 1) for name in ("exp", "log", "sqrt")},
    "abs": (ca.fabs, 1),
    "atan2": (ca.atan2, 2),
    "min": (ca.fmin, 2),
    "max": (ca.fmax, 2),
}
"""Functions by name, with their number of arguments."""


def parse_expression(text: str, where: str, variables: tuple[str, ...] = ("s",)) -> Callable[..., Any]:
    """Return a function of namespaces for an expression.

    Args:
        text: Expression such as `force**2 / mass`.
        where: Location for messages.
        variables: Names of the namespaces. With one, its names are written alone (`x`); with several, after a dot
            (`end.x - start.x`).

    Raises:
        SettingsError: The text is too long, or is not an expression of the allowed kind.
    """
    if not isinstance(text, str) or not 0 < len(text) <= MAX_CHARACTERS:
        raise SettingsError(f"{where}: Give an expression of 1 to {MAX_CHARACTERS} characters as text.")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SettingsError(f"{where}: {text!r} is not an expression. Check brackets and operators.") from None
    if sum(1 for _ in ast.walk(tree)) > MAX_PARTS:
        raise SettingsError(f"{where}: The expression has more than {MAX_PARTS} parts. Split it into outputs.")
    _check(tree, where, variables, MAX_DEPTH)

    def evaluate(*namespaces: Any) -> Any:
        try:
            value = _evaluate(tree, dict(zip(variables, namespaces, strict=True)), len(variables) == 1)
        except (ZeroDivisionError, OverflowError) as error:
            raise SettingsError(f"{where}: {text!r} cannot be computed ({error}).") from None
        if isinstance(value, complex):
            raise SettingsError(f"{where}: {text!r} is a complex number.")
        return value

    return evaluate


def _check(node: ast.AST, where: str, variables: tuple[str, ...], depth: int) -> None:
    """Raise SettingsError for parts that are not allowed."""
    if depth == 0:
        raise SettingsError(f"{where}: The expression is nested more than {MAX_DEPTH} deep. Split it into outputs.")
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            return
        case ast.Name() if len(variables) == 1 or node.id in CONSTANTS:
            return
        case ast.Attribute() if len(variables) > 1:
            root = _root(node)
            if root not in variables:
                raise SettingsError(f"{where}: {unknown_name('name', root, variables)}.")
            return
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            parts: list[ast.AST] = [node.left, node.right]
        case ast.UnaryOp(op=op) if type(op) in SIGNS:
            parts = [node.operand]
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            if name not in FUNCTIONS:
                raise SettingsError(f"{where}: {unknown_name('function', name, FUNCTIONS)}.")
            if len(node.args) != FUNCTIONS[name][1]:
                raise SettingsError(f"{where}: {name} takes {FUNCTIONS[name][1]} arguments, not {len(node.args)}.")
            parts = list(node.args)
        case _:
            allowed = "numbers, names, + - * / **, and functions"
            raise SettingsError(f"{where}: {ast.unparse(node)[:60]!r} is not allowed. Use {allowed}.")
    for part in parts:
        _check(part, where, variables, depth - 1)


def _root(node: ast.AST) -> str:
    """Return the first name of a dotted one; "" if it does not begin with a name."""
    while isinstance(node, ast.Attribute) and not node.attr.startswith("_"):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _member(parent: Any, name: str) -> Any:
    """Return a name of a namespace or a part of a phase; raise SettingsError for members of anything else."""
    if isinstance(parent, Namespace):
        return parent[name]
    if isinstance(parent, PhaseView) and name in PhaseView._fields:
        return getattr(parent, name)
    known = PhaseView._fields if isinstance(parent, PhaseView) else ()
    raise SettingsError(f"{unknown_name('part', name, known)}.")


def _evaluate(node: Any, names: dict[str, Any], single: bool) -> Any:
    match node:
        case ast.Constant():
            return float(node.value)  # type: ignore[arg-type]
        case ast.Name():
            if node.id in CONSTANTS:
                return CONSTANTS[node.id]
            return next(iter(names.values()))[node.id] if single else names[node.id]
        case ast.Attribute():
            return _member(_evaluate(node.value, names, single), node.attr)
        case ast.BinOp():
            left, right = (_evaluate(part, names, single) for part in (node.left, node.right))
            return OPERATORS[type(node.op)](left, right)
        case ast.UnaryOp():
            return SIGNS[type(node.op)](_evaluate(node.operand, names, single))
        case _:
            return FUNCTIONS[node.func.id][0](*(_evaluate(part, names, single) for part in node.args))
