"""Optimizers, gradient clipping and schedules: optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from named import add, f32

STEPS = 10


def trace(file, op, attrs, optimizer, scale=1.0):
    """Ten steps from given parameters with given gradients: the updates, and the parameters after each."""
    rng = np.random.default_rng(21)
    params = {"w": jnp.asarray(f32(rng.normal(size=(3, 2)))), "b": jnp.asarray(f32(rng.normal(size=2)))}
    grads = {"w": f32(rng.normal(size=(STEPS, 3, 2)) * scale), "b": f32(rng.normal(size=(STEPS, 2)) * scale)}
    # A parameter whose gradient is zero for a while, and one whose gradient jumps.
    grads["w"][:4, 0, 0] = 0.0
    grads["b"][5, 1] *= 1000.0
    inputs = {**{f"params.{k}": v for k, v in params.items()}, **{f"grads.{k}": v for k, v in grads.items()}}

    @jax.jit
    def step(carry, grads):
        params, state = carry
        updates, state = optimizer.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        return (params, state), (updates, params)

    _, (updates, after) = jax.lax.scan(step, (params, optimizer.init(params)), grads)
    outputs = {**{f"updates.{k}": v for k, v in updates.items()}, **{f"params.{k}": v for k, v in after.items()}}
    add(file, op, attrs, inputs, outputs)


def optimizers(file):
    for attrs in [{"learning_rate": 0.01}, {"learning_rate": 2.5e-4, "eps": 1e-5}, {"learning_rate": 0.1, "b1": 0.5, "b2": 0.9, "eps": 1e-3, "eps_root": 1e-4}]:
        trace(file, "adam", attrs, optax.adam(**attrs))
    trace(file, "adam", {"learning_rate": 0.01, "nesterov": True}, optax.adam(0.01, nesterov=True))
    for attrs in [{"learning_rate": 0.01}, {"learning_rate": 0.01, "weight_decay": 0.1}]:
        trace(file, "adamw", attrs, optax.adamw(**attrs))
    for attrs in [{"learning_rate": 0.1}, {"learning_rate": 0.1, "momentum": 0.9}, {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}]:
        trace(file, "sgd", attrs, optax.sgd(**attrs))
    for attrs in [
        {"learning_rate": 0.01},
        {"learning_rate": 7e-4, "decay": 0.99, "eps": 1e-5},
        {"learning_rate": 7e-4, "decay": 0.99, "eps": 0.1, "eps_in_sqrt": False},
        {"learning_rate": 0.01, "centered": True},
        {"learning_rate": 0.01, "momentum": 0.9},
        {"learning_rate": 0.01, "initial_scale": 1.0},
    ]:
        trace(file, "rmsprop", attrs, optax.rmsprop(**attrs))
    trace(file, "adagrad", {"learning_rate": 0.1}, optax.adagrad(0.1))
    trace(file, "lion", {"learning_rate": 0.01, "weight_decay": 0.01}, optax.lion(0.01, weight_decay=0.01))
    trace(file, "lamb", {"learning_rate": 0.01, "weight_decay": 0.01}, optax.lamb(0.01, weight_decay=0.01))
    trace(file, "clip_by_global_norm", {"max_norm": 0.5}, optax.clip_by_global_norm(0.5))
    trace(file, "clip_by_global_norm", {"max_norm": 0.5, "note": "gradients below the limit"}, optax.clip_by_global_norm(0.5), 1e-4)
    trace(file, "clip_by_global_norm", {"max_norm": 0.5, "note": "gradients of zero"}, optax.clip_by_global_norm(0.5), 0.0)
    trace(file, "clip", {"max_delta": 0.7}, optax.clip(0.7))
    schedule = optax.linear_schedule(2.5e-4, 0.0, 8)
    trace(
        file,
        "chain",
        {"program": "clip_by_global_norm(0.5), then adam(eps 1e-5) with the learning rate 2.5e-4 falling linearly to 0 in 8 steps; update k (from 0) uses the schedule at k"},
        optax.chain(optax.clip_by_global_norm(0.5), optax.adam(schedule, eps=1e-5)),
    )


def schedules(file):
    counts = np.array([0, 1, 2, 3, 5, 7, 10, 15, 19, 20, 21, 30, 100], np.int32)
    cases = [
        ("constant_schedule", {"value": 0.3}),
        ("linear_schedule", {"init_value": 2.5e-4, "end_value": 0.0, "transition_steps": 20}),
        ("linear_schedule", {"init_value": 1.0, "end_value": 0.1, "transition_steps": 10, "transition_begin": 5}),
        ("polynomial_schedule", {"init_value": 1.0, "end_value": 0.1, "power": 2.0, "transition_steps": 20}),
        ("polynomial_schedule", {"init_value": 0.1, "end_value": 1.0, "power": 0.5, "transition_steps": 10, "transition_begin": 3}),
        ("cosine_decay_schedule", {"init_value": 1.0, "decay_steps": 20}),
        ("cosine_decay_schedule", {"init_value": 0.5, "decay_steps": 15, "alpha": 0.1, "exponent": 2.0}),
        ("exponential_decay", {"init_value": 1.0, "transition_steps": 5, "decay_rate": 0.5}),
        ("exponential_decay", {"init_value": 1.0, "transition_steps": 5, "decay_rate": 0.5, "staircase": True, "end_value": 0.1}),
        ("warmup_cosine_decay_schedule", {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 5, "decay_steps": 20, "end_value": 0.1}),
    ]
    for name, attrs in cases:
        schedule = getattr(optax, name)(**attrs)
        values = [schedule(jnp.asarray(c)) for c in counts]
        add(file, name, attrs, {"count": counts}, {"value": f32(values)})


def norms_and_averages(file):
    rng = np.random.default_rng(22)
    new, old = f32(rng.normal(size=(2, 3))), f32(rng.normal(size=(2, 3)))
    add(file, "global_norm", {}, {"a": new, "b": old}, {"value": optax.global_norm({"a": new, "b": old})})
    add(file, "incremental_update", {"step_size": 0.005}, {"new": new, "old": old}, {"value": optax.incremental_update(new, old, 0.005)})


def rectified(file):
    for attrs in [{"learning_rate": 0.01}, {"learning_rate": 2.5e-4, "b1": 0.8, "b2": 0.99, "eps": 1e-5, "eps_root": 1e-4}, {"learning_rate": 0.01, "b2": 0.9, "threshold": 4.0}]:
        trace(file, "radam", attrs, optax.radam(**attrs))


def make(file):
    for part in (optimizers, schedules, norms_and_averages):
        part(file)
