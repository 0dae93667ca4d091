"""Optimizers around optimizers, averages, and Adagrad's and LAMB's settings: optax."""

import optax

from rl_optimizers import trace


def make(file):
    attrs = {"learning_rate": 0.1, "initial_accumulator_value": 0.0, "eps": 1e-3}
    trace(file, "adagrad", attrs, optax.adagrad(**attrs))
    trace(file, "lamb", {"learning_rate": 0.01, "weight_decay": 0.0, "note": "gradients of zero"}, optax.lamb(0.01), 0.0)
    attrs = {"program": "adam(0.01) for w; the gradients of b pass"}
    trace(file, "masked", attrs, optax.masked(optax.adam(0.01), {"w": True, "b": False}))
    attrs = {"program": "clip_by_global_norm(0.5), then adam(0.01), for w; sgd(0.1) with momentum 0.9 for b"}
    clipped = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(0.01))
    trace(file, "partition", attrs, optax.partition({"w": clipped, "b": optax.sgd(0.1, 0.9)}, {"w": "w", "b": "b"}))
    attrs = {"program": "adam(0.01) for w; b stays as it is"}
    trace(file, "partition", {**attrs, "note": "frozen"}, optax.partition({"w": optax.adam(0.01), "b": optax.set_to_zero()}, {"w": "w", "b": "b"}))
    for every in (1, 3):
        trace(file, "multi_steps", {"every": every, "program": "of adam(0.01)"}, optax.MultiSteps(optax.adam(0.01), every).gradient_transformation())
    for debias in (True, False):
        trace(file, "ema", {"decay": 0.9, "debias": debias}, optax.ema(0.9, debias))
