import math
from xml.etree import ElementTree

from borelli.files.html_repr import MAX_LINES, html_table, sparkline_svg


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
