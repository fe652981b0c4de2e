"""Sentences for the user stay short, whatever a file has put into them."""

import time

from borelli.errors import list_names, unknown_name


def test_an_unknown_name_shows_the_nearest_and_all():
    assert unknown_name("marker", "LKNEE", ["LKNE", "RKNE"]) == (
        "unknown marker 'LKNEE' (did you mean 'LKNE'?); known: LKNE, RKNE"
    )
    assert unknown_name("marker", "x", []) == "unknown marker 'x'; known: none"


def test_absurd_names_are_cut_and_not_compared():
    start = time.perf_counter()
    sentence = unknown_name("marker", "a" * 10**6, ["b" * 10**6] * 10**4)
    assert time.perf_counter() - start < 1.0
    assert len(sentence) < 5000
    assert sentence.endswith("(10000 in all)")


def test_a_list_says_how_much_it_leaves_out():
    assert list_names(["a", "b"]) == "a, b"
    assert list_names(list("abcdef"), 2) == "a, b, ... (6 in all)"
