"""The examples in the docstrings of the functions at the top level of the package."""

import doctest
import inspect

import pytest

import borelli

FUNCTIONS = {name: value for name in borelli.__all__ if inspect.isfunction(value := getattr(borelli, name))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder(recurse=False).find(FUNCTIONS[name], name, globs={"bo": borelli})
    assert test.examples, f"{name} has no example"
    messages: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=messages.append)
    assert not messages, "".join(messages)
