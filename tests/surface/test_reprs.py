"""The `repr` of every public class is short, whatever its fields contain, and results have HTML for notebooks."""

import dataclasses
import inspect
import re
from importlib import import_module

import numpy as np
import pytest

import borelli as bo
from borelli.files.html_repr import fields_repr, fields_summary
from borelli.physics.arrays.compile_model import CompiledModel

SUBPACKAGES = ("analysis", "control", "dynamics", "model", "muscles", "optimal", "physics", "pipeline", "recording",
               "scenes", "synthetic", "view")  # fmt: skip
MAX_REPR = 2000  # characters
MANY = 300


def public_classes():
    modules = [bo, *(import_module(f"borelli.{name}") for name in SUBPACKAGES)]
    found = {one for module in modules for name in module.__all__ if inspect.isclass(one := getattr(module, name))}
    return sorted(found, key=lambda one: (one.__module__, one.__name__))


CLASSES = {f"{one.__module__}.{one.__name__}": one for one in (*public_classes(), CompiledModel)}
FIELDS = {
    name: {field.name: field.type for field in dataclasses.fields(one)} if dataclasses.is_dataclass(one)
    else getattr(one, "__annotations__", {})
    for name, one in CLASSES.items() if dataclasses.is_dataclass(one) or hasattr(one, "_fields")
}  # fmt: skip
BY_NAME = {name.rpartition(".")[2]: name for name in FIELDS}


def has_own_repr(one):
    """Return whether the `repr` of a class states more than its fields."""
    shown = getattr(one, "_summary", one.__repr__)
    if shown in (fields_repr, fields_summary) or {"fields_repr", "fields_summary"} & set(shown.__code__.co_names):
        return False
    generated = hasattr(shown, "__wrapped__") or "collections" in shown.__code__.co_filename
    return not generated


OWN_SUMMARY = {name for name in FIELDS if has_own_repr(CLASSES[name])}
"""Classes whose `repr` is computed from results: tests of the view show it for real ones."""


class Unknown:
    """Value of a field of another class, with a long `repr`."""

    name = "x" * MANY

    def __repr__(self):
        return "y" * 10_000


def filled(annotation, depth=0):
    """Return a large value of an annotated type."""
    kind = getattr(annotation, "__forward_arg__", str(annotation)).split(" | ")[0]
    if re.match(r"(npt\.)?NDArray|Array|Floats|Integers|Bools", kind):
        return np.random.default_rng(0).normal(size=(MANY, 20))
    if kind.startswith(("Mapping", "dict")):
        return {f"name_of_entry_{i}": "z" * 100 for i in range(MANY)}
    if kind.startswith(("tuple", "list", "Sequence")):
        inner = kind.partition("[")[2].partition(",")[0].rstrip("]")
        return tuple(filled(inner, depth + 1) for _ in range(MANY if depth < 2 else 3))
    if kind in ("str", "float", "int", "bool", "None"):
        return {"str": "name_of_something", "float": 1.234567890123456, "int": 123456, "bool": True}.get(kind)
    if kind in ("Vector", "Quaternion", "Matrix"):
        return (1.2345678901234567,) * 3
    if kind in ("Softness", "ErrorSizes", "SolverSettings"):
        return instance(BY_NAME[kind])
    if kind in BY_NAME and depth < 3 and BY_NAME[kind] not in OWN_SUMMARY:
        return instance(BY_NAME[kind], depth + 1)
    return Unknown()


def instance(name, depth=0):
    """Return an instance of a class with large fields."""
    values = {field: filled(kind, depth) for field, kind in FIELDS[name].items()}
    if hasattr(CLASSES[name], "_fields"):
        return CLASSES[name](**values)
    made = object.__new__(CLASSES[name])
    for field, value in values.items():
        object.__setattr__(made, field, value)
    return made


@pytest.mark.parametrize("name", sorted(set(FIELDS) - OWN_SUMMARY))
def test_reprs_of_large_objects_are_short(name):
    text = repr(instance(name))
    assert CLASSES[name].__name__ in text and len(text) < MAX_REPR, len(text)


@pytest.mark.parametrize("name", sorted(name for name in FIELDS if hasattr(CLASSES[name], "_summary")))
def test_results_with_a_summary_have_tables_for_notebooks(name):
    assert callable(getattr(CLASSES[name], "_repr_html_", None))
    if name not in OWN_SUMMARY:
        html = instance(name)._repr_html_()
        assert html.startswith("<table>") and CLASSES[name].__name__ in html and len(html) < 10_000
