"""Distributions of answers, policies that explore, mixtures: distrax."""

import distrax
import jax
import numpy as np

from named import call, f32


def bernoulli(file):
    rng = np.random.default_rng(61)
    key = jax.random.PRNGKey(6)
    logits, other = f32(rng.normal(size=7) * 2), f32(rng.normal(size=7))
    call(file, "bernoulli.sample", {}, lambda key, logits: distrax.Bernoulli(logits).sample(seed=key), {"key": key, "logits": logits})
    call(file, "bernoulli.mode", {}, lambda logits: distrax.Bernoulli(logits).mode(), {"logits": logits})
    f = lambda logits, other: distrax.Bernoulli(logits).kl_divergence(distrax.Bernoulli(other))
    call(file, "bernoulli.kl_divergence", {}, f, {"logits": logits, "other": other}, ["logits", "other"])


def policies(file):
    rng = np.random.default_rng(62)
    key = jax.random.PRNGKey(7)
    preferences, value = f32(rng.normal(size=(5, 4))), rng.integers(0, 4, 5, np.int32)
    for name, make, attrs in [
        ("epsilon_greedy", lambda x: distrax.EpsilonGreedy(x, 0.2), {"epsilon": 0.2}),
        ("softmax_policy", lambda x: distrax.Softmax(x, 0.5), {"temperature": 0.5}),
    ]:
        wrt = ["preferences"] if name == "softmax_policy" else []
        call(file, f"{name}.log_prob", attrs, lambda preferences, value: make(preferences).log_prob(value), {"preferences": preferences, "value": value}, wrt)
        call(file, f"{name}.entropy", attrs, lambda preferences: make(preferences).entropy(), {"preferences": preferences}, wrt)
        call(file, f"{name}.mode", attrs, lambda preferences: make(preferences).mode(), {"preferences": preferences})
        call(file, f"{name}.sample", attrs, lambda key, preferences: make(preferences).sample(seed=key), {"key": key, "preferences": preferences})


def mixtures(file):
    rng = np.random.default_rng(63)
    key = jax.random.PRNGKey(8)
    weights = f32(rng.normal(size=(4, 3)))
    gaussian = lambda *event: {"loc": f32(rng.normal(size=(4, 3, *event)) * 2), "scale": f32(rng.uniform(0.3, 2, (4, 3, *event)))}
    for name, make, parameters, value in [
        ("normal", lambda loc, scale: distrax.Normal(loc, scale), gaussian(), f32(rng.normal(size=4))),
        ("multivariate_normal_diag", lambda loc, scale: distrax.MultivariateNormalDiag(loc, scale), gaussian(2), f32(rng.normal(size=(4, 2)))),
        ("categorical", lambda logits: distrax.Categorical(logits), {"logits": f32(rng.normal(size=(4, 3, 5)))}, rng.integers(0, 5, 4, np.int32)),
    ]:
        mixture = lambda weights, parameters: distrax.MixtureSameFamily(distrax.Categorical(weights), make(**parameters))
        f = lambda weights, value, **parameters: mixture(weights, parameters).log_prob(value)
        wrt = ["weights", *parameters]
        call(file, f"mixture.{name}.log_prob", {}, f, {"weights": weights, "value": value, **parameters}, wrt)
        # distrax gives the draws of integers as floats.
        f = lambda key, weights, **parameters: mixture(weights, parameters).sample(seed=key).astype(value.dtype)
        call(file, f"mixture.{name}.sample", {}, f, {"key": key, "weights": weights, **parameters})


def make(file):
    for part in (bernoulli, policies, mixtures):
        part(file)
