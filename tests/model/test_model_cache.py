"""What follows from a model is found once for each, and forgotten with it."""

import gc
from dataclasses import replace

from borelli.model.model_cache import cached_per_model
from borelli.people.human import human


def test_results_are_cached_per_model_and_released_with_it():
    asked = []

    @cached_per_model
    def name_of(model, ending):
        asked.append(model.name)
        return [model.name + ending]

    one = human()
    other = replace(one)  # equal, but another
    found = name_of(one, "!")
    assert found == [f"{one.name}!"]
    assert name_of(one, "!") is found
    assert name_of(one, "?") == [f"{one.name}?"]
    assert name_of(other, "!") is not found
    assert len(asked) == 3
    del one
    gc.collect()
    # a new model at the same address is computed again
    for _ in range(20):
        name_of(replace(other), "!")
    assert len(asked) == 23
