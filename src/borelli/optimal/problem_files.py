"""Problem files: optimal control problems in TOML, with systems and costs as expressions of names.

See docs/optimal-control.md for the keys. Nothing in a file is executed: expressions are parsed (`expression_parser`).
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from borelli.errors import BorelliError, FileFormatError, SettingsError, unknown_name
from borelli.files.text import parse_toml, read_text
from borelli.optimal.expression_parser import parse_expression
from borelli.optimal.levels import with_mesh
from borelli.optimal.problem import Constraint, Link, Phase, Problem
from borelli.optimal.system import System, Variable, make_system
from borelli.optimal.transcription.guess import default_guess
from borelli.optimal.transcription.transcribe import transcribe

PROBLEM_KEYS = ("name", "systems", "phases", "links", "parameters", "constraints", "cost", "guess")
SYSTEM_KEYS = ("states", "controls", "parameters", "rates", "outputs", "output_units")
VARIABLE_KEYS = ("unit", "lower", "upper", "scale", "value")
PHASE_KEYS = (
    "name", "system", "duration", "nodes", "elements", "control", "start", "end", "bounds", "path", "cost",
    "final_cost", "integrals", "periodic", "guess",
)  # fmt: skip
CONSTRAINT_KEYS = ("name", "expression", "lower", "upper")
LINK_KEYS = ("before", "after", "states", "conditions")


def read_problem(path: str | PathLike[str]) -> Problem:
    """Return the problem in a TOML file.

    Args:
        path: File to read.

    Raises:
        FileFormatError: The file is not a problem; the message names the key or the expression.
    """
    table = parse_toml(read_text(path), path)
    try:
        problem = _problem(table)
        transcribe(with_mesh(problem, (2, 1)), default_guess(problem), order=1)  # raises for wrong names in expressions
    except FileFormatError:
        raise
    except BorelliError as error:
        raise FileFormatError(path, str(error)) from None
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise FileFormatError(
            path, f"A value has the wrong kind ({error}). Compare it with the documentation."
        ) from None
    return problem


def _problem(table: Mapping[str, Any]) -> Problem:
    where = f"problem {table.get('name', '')!r}"
    _check_keys(table, PROBLEM_KEYS, ("name", "systems", "phases"), where)
    systems = {name: _system(name, part) for name, part in table["systems"].items()}
    phases = [_phase(part, systems) for part in table["phases"]]
    names = tuple(phase.name for phase in phases)
    links = [_link(part) for part in table["links"]] if "links" in table else None
    cost = parse_expression(table["cost"], f"{where}, cost", ("", *names)) if "cost" in table else None
    return Problem(
        str(table["name"]),
        phases,
        links,
        _variables(table.get("parameters", {}), where),
        [_problem_constraint(part, where, names) for part in table.get("constraints", ())],
        None if cost is None else _by_phase(cost, names),
        dict(table.get("guess", {})),
    )


def _system(name: str, table: Mapping[str, Any]) -> System:
    where = f"system {name!r}"
    _check_keys(table, SYSTEM_KEYS, ("states", "rates"), where)
    rates = {key: parse_expression(text, f"{where}, rate of {key!r}") for key, text in table["rates"].items()}
    outputs = {key: parse_expression(text, f"{where}, {key!r}") for key, text in table.get("outputs", {}).items()}
    return make_system(
        name,
        states=_variables(table["states"], where),
        controls=_variables(table.get("controls", {}), where),
        parameters=_variables(table.get("parameters", {}), where),
        rates=lambda s: {key: function(s) for key, function in rates.items()},
        outputs=(lambda s: {key: function(s) for key, function in outputs.items()}) if outputs else None,
        output_units=table.get("output_units"),
    )


def _variables(table: Mapping[str, Any], where: str) -> list[Variable]:
    """Return variables from tables by name; `value` fixes one."""
    found = []
    for name, keys in table.items():
        _check_keys(keys, VARIABLE_KEYS, (), f"{where}, {name!r}")
        settings = {key: value for key, value in keys.items() if key != "value"}
        if "value" in keys:
            settings |= {"lower": float(keys["value"]), "upper": float(keys["value"])}
        found.append(Variable(name, **settings))
    return found


def _phase(table: Mapping[str, Any], systems: Mapping[str, System]) -> Phase:
    where = f"phase {table.get('name', '')!r}"
    _check_keys(table, PHASE_KEYS, ("name", "system", "duration"), where)
    if table["system"] not in systems:
        raise SettingsError(f"{where}: {unknown_name('system', str(table['system']), systems)}.")
    settings = {key: table[key] for key in ("nodes", "elements", "control", "periodic", "guess") if key in table}
    for key in ("start", "end", "bounds"):
        settings[key] = {name: _bounds(value) for name, value in table.get(key, {}).items()}
    costs = table.get("cost", {})
    if isinstance(costs, str):
        costs = {"cost": costs}
    for key, expressions in (("cost", costs), ("integrals", table.get("integrals", {}))):
        settings[key] = {n: parse_expression(text, f"{where}, {key} {n!r}") for n, text in expressions.items()}
    if "final_cost" in table:
        settings["final_cost"] = parse_expression(table["final_cost"], f"{where}, final cost")
    path = [_constraint(part, where, ("s",)) for part in table.get("path", ())]
    return Phase(str(table["name"]), systems[table["system"]], _bounds(table["duration"]), path=path, **settings)


def _bounds(value: Any) -> Any:
    return tuple(float(part) for part in value) if isinstance(value, list) else float(value)


def _constraint(table: Mapping[str, Any], where: str, variables: tuple[str, ...]) -> Constraint:
    _check_keys(table, CONSTRAINT_KEYS, ("name", "expression"), f"{where}, constraint")
    name = str(table["name"])
    expression = parse_expression(table["expression"], f"{where}, constraint {name!r}", variables)
    bounds = {key: float(table[key]) for key in ("lower", "upper") if key in table}
    return Constraint(name, expression, **bounds)


def _problem_constraint(table: Mapping[str, Any], where: str, phases: tuple[str, ...]) -> Constraint:
    found = _constraint(table, where, ("", *phases))
    return Constraint(found.name, _by_phase(found.expression, phases), found.lower, found.upper)


def _by_phase(expression: Any, phases: tuple[str, ...]) -> Any:
    """Return a function of the phases of a problem for an expression of their names, such as `heel.duration`."""
    return lambda p: expression(None, *(p[name] for name in phases))


def _link(table: Mapping[str, Any]) -> Link:
    _check_keys(table, LINK_KEYS, ("before", "after"), "link")
    where = f"link of {table['before']!r} and {table['after']!r}"
    conditions = [_constraint(part, where, ("end", "start")) for part in table.get("conditions", ())]
    return Link(str(table["before"]), str(table["after"]), table.get("states"), conditions)


def _check_keys(table: Any, known: tuple[str, ...], required: tuple[str, ...], where: str) -> None:
    """Raise SettingsError for unknown and missing keys."""
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where}: Expected a table of keys, found {type(table).__name__}.")
    for key in table:
        if key not in known:
            raise SettingsError(f"{where}: {unknown_name('key', key, known)}.")
    for key in required:
        if key not in table:
            raise SettingsError(f"{where}: The key {key!r} is missing. Add it.")
