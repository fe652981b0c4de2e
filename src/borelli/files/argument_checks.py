"""Types of the arguments that users pass to public functions, checked against the annotations of the functions.

Only public names are wrapped: functions call each other unchecked. Annotations are evaluated at a function's first
call, so that importing borelli loads nothing for them.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache, wraps
from math import isfinite
from types import FunctionType
from typing import Any, TypeVar

from borelli.errors import SettingsError
from borelli.files.argument_types import ANYTHING, Expected, expected_type

F = TypeVar("F")
READERS = {
    "Recording": "bo.read_recording",
    "Model": "bo.read_model",
    "Scene": "bo.read_scene",
    "Motion": "bo.read_stage",
    "Torques": "bo.read_stage",
    "MuscleForces": "bo.read_stage",
    "Energy": "bo.read_stage",
    "Excitations": "bo.muscles.read_excitations",
    "Problem": "bo.optimal.read_problem",
    "Solution": "bo.optimal.read_solution",
    "Dataset": "xarray.open_dataset",
}
"""Functions that read an object of a type from a file."""
MAKERS = {
    "Recording": "bo.read_recording",
    "Model": "bo.human or bo.read_model",
    "Fit": "bo.fit_model",
    "Motion": "bo.inverse_kinematics",
    "Torques": "bo.inverse_dynamics",
    "MuscleForces": "bo.muscle_forces",
    "Energy": "bo.compute_energy",
    "Scene": "bo.gallery_scene or bo.read_scene",
    "Simulation": "bo.dynamics.start_simulation",
    "MuscleArrays": "bo.muscles.make_muscle_arrays",
    "Targets": "bo.control.keyframes",
    "System": "bo.optimal.make_system",
}
"""Functions that return an object of a type."""


def check_public_functions(module: str) -> None:
    """Replace every function in `__all__` of a module by one that checks its arguments."""
    names = vars(sys.modules[module])
    for name in names["__all__"]:
        names[name] = with_checked_arguments(names[name], module)


def with_checked_arguments(value: Any, module: str) -> Any:
    """Return a function that checks its arguments first; any other object is returned as it is.

    Args:
        value: Object that a public name stands for.
        module: Module in which users find it. A function of several modules belongs to the first.
    """
    return _checked(value, module) if type(value) is FunctionType and not hasattr(value, "__wrapped__") else value


def check_arguments(function: F) -> F:
    """Return a method that checks its arguments first; a decorator.

    Raises:
        SettingsError: When the method is called with an argument of a wrong type.
    """
    checked: F = _wrap(function)
    return checked


_first_modules: dict[Any, Any] = {}


def _checked(function: Any, module: str) -> Any:
    if function not in _first_modules:
        checked = _first_modules[function] = _wrap(function)
        checked.__module__ = module  # where pickle finds it
    return _first_modules[function]


def _wrap(function: Any) -> Any:
    expected: list[_Arguments] = []

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not expected:
            expected.append(_Arguments(function, checked.__module__))
        expected[0].check(args, kwargs)
        return function(*args, **kwargs)

    return checked


class _Arguments:
    """Types that the arguments of a function may have."""

    def __init__(self, function: Any, module: str) -> None:
        self.name, self.module = function.__qualname__, module
        names = _Names(function)
        self.positional: list[str] = []
        self.rest: tuple[str, Expected] | None = None
        self.types: dict[str, Expected] = {}
        for parameter in inspect.signature(function).parameters.values():
            annotation = parameter.annotation
            try:
                evaluated = eval(annotation, {}, names) if isinstance(annotation, str) else annotation
            except OSError:  # frozen programs have no sources: their arguments are not checked
                evaluated = Any
            expected = expected_type(Any if annotation is parameter.empty else evaluated)
            if parameter.kind is parameter.VAR_POSITIONAL:
                self.rest = parameter.name, expected
            elif parameter.kind is not parameter.VAR_KEYWORD:
                self.types[parameter.name] = expected
                if parameter.kind is not parameter.KEYWORD_ONLY:
                    self.positional.append(parameter.name)

    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise SettingsError if an argument has a wrong type."""
        types = self.types
        for name, value in zip(self.positional, args, strict=False):
            if not types[name].admits(value):
                self._refuse(name, types[name], value, args, kwargs)
        for name, value in kwargs.items():
            if name in types and not types[name].admits(value):
                self._refuse(name, types[name], value, args, kwargs)
        if self.rest is not None:
            for value in args[len(self.positional) :]:
                if not self.rest[1].admits(value):
                    self._refuse(*self.rest, value, args, kwargs)

    def _refuse(
        self, name: str, expected: Expected, value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        given = {**dict(zip(self.positional, args, strict=False)), **kwargs}
        part, wanted, wrong = expected.first_wrong(value)
        if (other := next(self._exchanged(name, expected, value, given), None)) is not None:
            remedy = f"It is swapped with {other}. Pass {name} first: {self.name}({name}, {other})."
            if name in kwargs:
                remedy = f"It is swapped with {other}. Exchange them."
        else:
            remedy = _remedy(f"{name}{part}", wanted, wrong) or f"See help({self._address()})."
        where = f"{self.name}: {name}{part}"
        raise SettingsError(f"{where}: Expected {wanted.text}, got {shown(wrong)}. {remedy}")

    def _address(self) -> str:
        """Return where users find the function; a method is named by its class."""
        if "." in self.name:
            return self.name
        module = "borelli" if self.name in sys.modules["borelli"].__all__ else self.module
        return f"{module.replace('borelli', 'bo', 1)}.{self.name}"

    def _exchanged(self, name: str, expected: Expected, value: Any, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield the arguments whose values would fit here, as the value given here would fit there."""
        for other, found in given.items():
            theirs = self.types.get(other, ANYTHING)
            if theirs is ANYTHING or other == name or found is None or not (theirs.names or expected.names):
                continue
            if expected.admits(found) and theirs.admits(value):
                yield other


class _Names(dict[str, Any]):
    """Names in the annotations of a function; imports for type checkers are run only for the names that need them."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, name: str) -> Any:
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        found: dict[str, Any] = {}
        exec(_typing_imports(self.function.__globals__["__name__"])[name], found)
        return found[name]


@cache
def _typing_imports(module: str) -> dict[str, str]:
    """Return the import statements of a module that only type checkers run, by the names that they bind."""
    statements: dict[str, str] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for inner in node.body:
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    statements.update({alias.asname or alias.name: ast.unparse(inner) for alias in inner.names})
    return statements


def shown(value: Any) -> str:
    """Return a value as a message shows it: a plain one with its type, of any other the type alone."""
    name = type(value).__name__
    if value is None or value is True or value is False:
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, str | int | float):
        text = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
        return f"the {name} {text}"
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def _remedy(name: str, wanted: Expected, value: Any) -> str | None:
    if isinstance(value, type):
        return f"Pass an instance: {value.__name__}(...)." if value.__name__ in wanted.names else None
    reader = next((READERS[one] for one in wanted.names if one in READERS), None)
    if reader is not None and (isinstance(value, str) or hasattr(value, "__fspath__")):
        return f"Read it first: {reader}({str(value)!r:.60})."
    if isinstance(value, str) and wanted.is_number and _is_number(value):
        return f"Pass the number: {name}={value.strip()}."
    if isinstance(value, str) and wanted.is_sequence and wanted.admits([value]):
        return f"Pass a list: [{value!r:.60}]."
    kind = type(value)
    fields: Collection[str] = (*getattr(kind, "__dataclass_fields__", ()), *getattr(kind, "_fields", ()))
    for one in wanted.names:
        attribute = one.lower()
        if attribute in fields and wanted.admits(getattr(value, attribute)):
            return f"Pass its {attribute}."
    makers = [MAKERS[one] for one in wanted.names if one in MAKERS]
    return f"Pass what {' or '.join(makers)} returns." if makers else None


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False
