import math
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import numpy as np

from borelli.files.html_repr import MAX_LINES, describe, fields_repr, fields_summary, html_table, sparkline_svg


def test_table_escapes_text():
    html = html_table("<b>walk</b>", [("a & b", "<script>"), ("frames", 3)])
    root = ElementTree.fromstring(html)
    assert root.find("caption").text == "<b>walk</b>"
    assert [[cell.text for cell in row] for row in root.iter("tr")] == [["a & b", "<script>"], ["frames", "3"]]


def test_svg_is_small_and_well_formed():
    time = [0.01 * i for i in range(5000)]
    series = {f"<{name}>" * 50: [math.sin(t + name) for t in time] for name in range(60)}
    svg = sparkline_svg(time, series, label="Height [m]")
    assert len(svg) < 10_000
    root = ElementTree.fromstring(svg)
    assert len(root.findall("{http://www.w3.org/2000/svg}path")) == MAX_LINES


def test_missing_values_interrupt_the_line():
    svg = sparkline_svg([0, 1, 2, 3, 4], {"a": [0.0, 1.0, math.nan, 1.0, 0.0]})
    assert svg.count("M") == 2 and svg.count("L") == 2


def test_plot_without_finite_values_is_empty():
    assert sparkline_svg([], {}) == ""
    assert sparkline_svg([0, 1], {"a": [math.nan, math.nan]}) == ""


def test_constant_series_are_drawn():
    assert "nan" not in sparkline_svg([0.0], {"a": [1.0]})


@dataclass(frozen=True)
class Part:
    """Class with fields of every kind."""

    name: str
    numbers: Any = ()
    entries: Any = ()
    hidden: Any = field(default=None, repr=False)

    __repr__ = fields_repr


def test_fields_are_described_by_shape_number_and_first_entries():
    long = Part("a", np.zeros((3, 4)), tuple(Part(f"part {i}") for i in range(9)), "never shown")
    parts = ", ".join(f"part {i}" for i in range(6))
    assert repr(long) == f"Part(name='a', numbers=<array of shape (3, 4)>, entries=<9 Part: {parts}, ...>)"
    assert fields_summary(long).rows[2] == ("entries", f"9 Part: {parts}, ...")
    assert repr(Part("b", (1.0, 2.5), {"x": 1})) == "Part(name='b', numbers=(1.0, 2.5), entries={'x': 1})"
    assert describe({f"n{i}": i for i in range(9)}) == "9: n0, n1, n2, n3, n4, n5, ..."
    assert describe(np.array([1.0, 0.25])) == "[1, 0.25]" and describe(np.float64(0.5)) == "0.5"
    assert describe(()) == describe({}) == "none" and describe(math.hypot) == "function hypot"
    assert len(describe("x" * 1000)) < 100 and len(describe([["x" * 1000]] * 5)) < 100
