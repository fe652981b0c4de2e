"""Electromyography (EMG): channels of muscles, envelopes, onsets, and agreement with activations."""
