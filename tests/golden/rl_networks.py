"""Initializers, layers and activations: flax and jax.nn. Distributions: distrax."""

import distrax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from named import add, call, f32


def initializers(file):
    """The key goes into the initializer as it is. Shapes are [in, out] and [height, width, in, out]."""
    for seed in (0, 1701):
        key = jax.random.PRNGKey(seed)
        for name in ("glorot_uniform", "glorot_normal", "lecun_normal", "lecun_uniform", "he_normal", "he_uniform"):
            for shape in [(4, 8), (3, 3, 2, 4)]:
                out = getattr(jax.nn.initializers, name)()(key, shape)
                add(file, name, {"shape": shape}, {"key": key}, {"value": out})
        out = jax.nn.initializers.variance_scaling(2.0, "fan_out", "truncated_normal")(key, (4, 8))
        add(file, "variance_scaling", {"shape": [4, 8], "scale": 2.0, "mode": "fan_out", "distribution": "truncated_normal"}, {"key": key}, {"value": out})


def flat(params, prefix=""):
    """A tree of parameters as `layer.kernel`."""
    out = {}
    for name, value in params.items():
        path = f"{prefix}{name}"
        out.update(flat(value, path + ".") if isinstance(value, dict) else {path: value})
    return out


def layer(file, op, attrs, module, x, rng, gradients=True):
    """A layer with random weights: its value, and the gradients of the sum of its squares."""
    params = module.init(jax.random.PRNGKey(0), x)["params"]
    params = jax.tree.map(lambda p: jnp.asarray(f32(rng.normal(size=p.shape) * 0.5)), params)
    apply = lambda params, x: module.apply({"params": params}, x)
    out = apply(params, x)
    more = {}
    if gradients:
        of_params, of_x = jax.grad(lambda p, x: jnp.sum(apply(p, x) ** 2), (0, 1))(params, x)
        more["gradients"] = {**flat(of_params), "x": of_x}
    add(file, op, attrs, {**flat(params), "x": x}, {"value": out}, **more)


class Mlp(nn.Module):
    sizes: tuple

    @nn.compact
    def __call__(self, x):
        for i, size in enumerate(self.sizes):
            x = nn.Dense(size, name=f"layers_{i}")(x)
            if i + 1 < len(self.sizes):
                x = nn.tanh(x)
        return x


def layers(file):
    rng = np.random.default_rng(31)
    x = f32(rng.normal(size=(5, 4)))
    layer(file, "dense", {"formula": "x @ kernel + bias"}, nn.Dense(3), x, rng)
    layer(file, "dense", {"formula": "x @ kernel", "use_bias": False}, nn.Dense(3, use_bias=False), x, rng)
    layer(file, "mlp", {"sizes": [8, 8, 2], "activation": "tanh", "formula": "no activation after the last layer"}, Mlp((8, 8, 2)), x, rng)
    layer(file, "layer_norm", {"epsilon": 1e-6}, nn.LayerNorm(), x, rng)
    layer(file, "rms_norm", {"epsilon": 1e-6}, nn.RMSNorm(), x, rng)
    image = f32(rng.normal(size=(2, 7, 6, 3)))
    for attrs in [
        {"features": 4, "kernel_size": [3, 3], "strides": [1, 1], "padding": "VALID"},
        {"features": 4, "kernel_size": [3, 3], "strides": [1, 1], "padding": "SAME"},
        {"features": 2, "kernel_size": [4, 3], "strides": [2, 2], "padding": "VALID"},
        {"features": 2, "kernel_size": [3, 3], "strides": [2, 2], "padding": "SAME"},
    ]:
        layer(file, "conv", {**attrs, "layout": "NHWC, kernel HWIO"}, nn.Conv(**attrs), image, rng)


def recurrent(file):
    """One step of a cell. Gate order and biases are flax's: `i*` kernels act on the input, `h*` on the state."""
    rng = np.random.default_rng(32)
    x = f32(rng.normal(size=(3, 4)))
    for op, cell in [("lstm_cell", nn.OptimizedLSTMCell(5)), ("gru_cell", nn.GRUCell(5))]:
        carry = jax.tree.map(lambda c: jnp.asarray(f32(rng.normal(size=c.shape))), cell.initialize_carry(jax.random.PRNGKey(0), x.shape))
        params = cell.init(jax.random.PRNGKey(0), carry, x)["params"]
        params = jax.tree.map(lambda p: jnp.asarray(f32(rng.normal(size=p.shape) * 0.5)), params)
        after, out = cell.apply({"params": params}, carry, x)
        names = ("c", "h") if op == "lstm_cell" else ("h",)
        state = lambda c: dict(zip(names, c if isinstance(c, tuple) else (c,)))
        assert np.array_equal(out, state(after)["h"])
        formula = {
            "lstm_cell": "i, f, o = sigmoid, g = tanh of (x @ i? + h @ h? + h?.bias); c' = f * c + i * g; h' = o * tanh(c')",
            "gru_cell": "r, z = sigmoid(x @ i? + i?.bias + h @ h?); n = tanh(x @ in + in.bias + r * (h @ hn + hn.bias)); h' = (1 - z) * n + z * h",
        }[op]
        add(file, op, {"formula": formula}, {**flat(params), **state(carry), "x": x}, {f"next.{k}": v for k, v in state(after).items()})


def pooling(file):
    """Windows over [batch, height, width, features]; gradients are those of the sum of the output times weights."""
    rng = np.random.default_rng(36)
    x = f32(rng.normal(size=(2, 7, 6, 3)))
    for window, strides, padding in [((2, 2), (2, 2), "VALID"), ((3, 3), (2, 2), "SAME"), ((3, 2), (1, 2), "SAME"), ((2, 3), (3, 1), "VALID")]:
        attrs = {"window": window, "strides": strides, "padding": padding}
        shape = nn.max_pool(x, window, strides, padding).shape
        inputs = {"x": x, "weights": f32(rng.normal(size=shape))}
        call(file, "max_pool", attrs, lambda x, weights: weights * nn.max_pool(x, window, strides, padding), inputs, ["x"])
        for count in (True, False):
            f = lambda x, weights: weights * nn.avg_pool(x, window, strides, padding, count_include_pad=count)
            call(file, "avg_pool", {**attrs, "count_include_pad": count}, f, inputs, ["x"])


class Residual(nn.Module):
    channels: int

    @nn.compact
    def __call__(self, x):
        y = nn.Conv(self.channels, (3, 3), name="first")(nn.relu(x))
        return x + nn.Conv(self.channels, (3, 3), name="second")(nn.relu(y))


class Section(nn.Module):
    channels: int

    @nn.compact
    def __call__(self, x):
        x = nn.max_pool(nn.Conv(self.channels, (3, 3), name="conv")(x), (3, 3), (2, 2), "SAME")
        for i in range(2):
            x = Residual(self.channels, name=f"blocks_{i}")(x)
        return x


class ImpalaDeep(nn.Module):
    channels: tuple
    features: int

    @nn.compact
    def __call__(self, x):
        for i, channels in enumerate(self.channels):
            x = Section(channels, name=f"sections_{i}")(x)
        return nn.relu(nn.Dense(self.features, name="dense")(nn.relu(x).reshape(*x.shape[:-3], -1)))


class ImpalaShallow(nn.Module):
    channels: tuple
    features: int

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(self.channels[0], (8, 8), (4, 4), "VALID", name="convs_0")(x))
        x = nn.relu(nn.Conv(self.channels[1], (4, 4), (2, 2), "VALID", name="convs_1")(x))
        return nn.relu(nn.Dense(self.features, name="dense")(x.reshape(*x.shape[:-3], -1)))


def networks(file):
    rng = np.random.default_rng(37)
    layer(file, "impala_deep", {"channels": [2, 3], "features": 4}, ImpalaDeep((2, 3), 4), f32(rng.normal(size=(2, 6, 5, 3))), rng)
    layer(file, "impala_shallow", {"channels": [2, 3], "features": 3}, ImpalaShallow((2, 3), 3), f32(rng.normal(size=(1, 20, 20, 1))), rng)


def unrolled_lstm(file):
    """An LSTM over a trajectory [T, in] that begins again from zeros before each step where `reset` is true."""
    rng = np.random.default_rng(38)
    cell = nn.OptimizedLSTMCell(3)
    xs, reset = f32(rng.normal(size=(6, 4))), np.array([False, False, True, False, True, True])
    carry = tuple(jnp.asarray(f32(rng.normal(size=3))) for _ in range(2))
    params = cell.init(jax.random.PRNGKey(0), carry, xs[0])["params"]
    params = jax.tree.map(lambda p: jnp.asarray(f32(rng.normal(size=p.shape) * 0.5)), params)
    outputs = []
    for x, again in zip(xs, reset):
        carry = jax.tree.map(lambda c: jnp.where(again, 0, c), carry)
        carry, out = cell.apply({"params": params}, carry, x)
        outputs.append(out)
        if len(outputs) == 1:
            start = carry
    # The record begins after the first step, whose state is as good as any.
    inputs = {**flat(params), "c": start[0], "h": start[1], "xs": xs[1:], "reset": reset[1:]}
    add(file, "lstm_unroll", {}, inputs, {"value": jnp.stack(outputs[1:]), "next.c": carry[0], "next.h": carry[1]})


def factors(file):
    """jnp.linalg.qr with LAPACK's signs; gradients of the sum of both factors, each times weights."""
    rng = np.random.default_rng(39)
    for m, n in [(4, 3), (3, 3), (1, 1), (5, 1)]:
        inputs = {"x": f32(rng.normal(size=(m, n))), "of_q": f32(rng.normal(size=(m, n))), "of_r": f32(rng.normal(size=(n, n)))}

        def weighted(x, of_q, of_r):
            q, r = jnp.linalg.qr(x)
            return {"q": q * of_q, "r": r * of_r}

        call(file, "qr", {}, weighted, inputs, ["x"])


def activations(file):
    x = f32([0, -0.0, 1, -1, 0.5, -0.5, 3, -3, 20, -20, 90, -90, 1e-4, -1e-4, np.inf, -np.inf, np.nan])
    finite = x[:14]
    for name in ("relu", "sigmoid", "softplus", "silu", "elu", "leaky_relu", "selu", "soft_sign", "log_sigmoid", "hard_tanh", "celu", "relu6", "mish"):
        function = getattr(jax.nn, name)
        call(file, name, {}, lambda x: function(x), {"x": x})
        call(file, name, {}, lambda x: function(x), {"x": finite}, ["x"])
    for approximate in (True, False):
        call(file, "gelu", {"approximate": approximate}, lambda x: jax.nn.gelu(x, approximate), {"x": finite}, ["x"])
    points = f32([0, -0.0, 1e-3, -1e-3, 1, -1, 5, -5, 10, -10, 30, -30, 100, -100])
    for name in ("relu", "sigmoid", "softplus", "silu", "elu", "leaky_relu", "selu", "soft_sign", "log_sigmoid", "hard_tanh", "celu", "relu6", "mish", "tanh"):
        function = getattr(jax.nn, name)
        call(file, name, {"note": "slopes"}, lambda x: function(x), {"x": points}, ["x"])
    for approximate in (True, False):
        call(file, "gelu", {"note": "slopes", "approximate": approximate}, lambda x: jax.nn.gelu(x, approximate), {"x": points}, ["x"])
    rng = np.random.default_rng(33)
    table = f32(rng.normal(size=(4, 5)) * 3)
    table[1] += 1000.0
    table[2, 1:] = -np.inf
    weights = f32(rng.normal(size=(4, 5)))
    for name in ("softmax", "log_softmax"):
        for axis in (-1, 0):
            call(file, name, {"axis": axis}, lambda x: getattr(jax.nn, name)(x, axis), {"x": table})
        f = lambda x, weights: weights * getattr(jax.nn, name)(x, -1)
        call(file, name, {"axis": -1, "note": "times weights"}, f, {"x": f32(rng.normal(size=(4, 5))), "weights": weights}, ["x"])
    for axis in (-1, 0):
        call(file, "logsumexp", {"axis": axis}, lambda x: jax.nn.logsumexp(x, axis), {"x": table})
        call(file, "logsumexp", {"axis": axis}, lambda x: jax.nn.logsumexp(x, axis), {"x": table[:2]}, ["x"])
    none = np.full((1, 3), -np.inf, np.float32)
    call(file, "logsumexp", {"axis": -1}, lambda x: jax.nn.logsumexp(x, -1), {"x": none})
    call(file, "one_hot", {"num_classes": 4}, lambda x: jax.nn.one_hot(x, 4), {"x": np.array([0, 3, 1, 4, -1], np.int32)})


def categorical(file):
    rng = np.random.default_rng(34)
    logits, other = f32(rng.normal(size=(6, 4)) * 2), f32(rng.normal(size=(6, 4)))
    masked = logits.copy()
    masked[:, 1] = -np.inf
    actions = rng.integers(0, 4, 6, np.int32)
    key = jax.random.PRNGKey(3)
    for x in (logits, masked):
        of = lambda f: lambda logits: f(distrax.Categorical(logits))
        call(file, "categorical.entropy", {}, of(lambda d: d.entropy()), {"logits": x}, ["logits"] if x is logits else [])
        call(file, "categorical.mode", {}, of(lambda d: d.mode()), {"logits": x})
        call(file, "categorical.probs", {}, of(lambda d: d.probs), {"logits": x})
        call(file, "categorical.sample", {}, lambda key, logits: distrax.Categorical(logits).sample(seed=key), {"key": key, "logits": x})
        call(file, "categorical.log_prob", {}, lambda logits, value: distrax.Categorical(logits).log_prob(value), {"logits": x, "value": actions}, ["logits"] if x is logits else [])
    f = lambda logits, other: distrax.Categorical(logits).kl_divergence(distrax.Categorical(other))
    call(file, "categorical.kl_divergence", {}, f, {"logits": logits, "other": other}, ["logits", "other"])
    call(file, "bernoulli.log_prob", {}, lambda logits, value: distrax.Bernoulli(logits).log_prob(value), {"logits": logits[0], "value": np.array([0, 1, 1, 0], np.int32)}, ["logits"])
    call(file, "bernoulli.entropy", {}, lambda logits: distrax.Bernoulli(logits).entropy(), {"logits": logits[0]}, ["logits"])
    for epsilon in (0.0, 0.1):
        call(file, "epsilon_greedy.probs", {"epsilon": epsilon}, lambda preferences: distrax.EpsilonGreedy(preferences, epsilon).probs, {"preferences": f32([[1, 3, 2], [2, 2, 1]])})
    call(file, "softmax_policy.probs", {"temperature": 0.5}, lambda preferences: distrax.Softmax(preferences, 0.5).probs, {"preferences": logits})


def gaussians(file):
    rng = np.random.default_rng(35)
    for name, make in [("normal", distrax.Normal), ("multivariate_normal_diag", distrax.MultivariateNormalDiag)]:
        shape = (4,) if name == "normal" else (4, 3)
        p = {"loc": f32(rng.normal(size=shape)), "scale": f32(rng.uniform(0.2, 2, shape))}
        other = {"other_loc": f32(rng.normal(size=shape)), "other_scale": f32(rng.uniform(0.2, 2, shape))}
        value = f32(rng.normal(size=shape) * 2)
        call(file, f"{name}.log_prob", {}, lambda loc, scale, value: make(loc, scale).log_prob(value), {**p, "value": value}, ["loc", "scale", "value"])
        call(file, f"{name}.entropy", {}, lambda loc, scale: make(loc, scale).entropy(), p, ["scale"])
        call(file, f"{name}.mode", {}, lambda loc, scale: make(loc, scale).mode(), p)
        f = lambda loc, scale, other_loc, other_scale: make(loc, scale).kl_divergence(make(other_loc, other_scale))
        call(file, f"{name}.kl_divergence", {}, f, {**p, **other}, ["loc", "scale", "other_loc", "other_scale"])
        key = jax.random.PRNGKey(4)
        call(file, f"{name}.sample", {}, lambda key, loc, scale: make(loc, scale).sample(seed=key), {"key": key, **p})
    p = {"loc": f32([0, 1, -1, 3]), "scale": f32([1, 0.5, 2, 0.1])}
    value = f32([0.3, -1.2, 4.0, 2.9])
    call(file, "normal.cdf", {}, lambda loc, scale, value: distrax.Normal(loc, scale).cdf(value), {**p, "value": value})

    def squashed(loc, scale, value):
        return distrax.Transformed(distrax.Normal(loc, scale), distrax.Tanh()).log_prob(value)

    attrs = {"formula": "log_prob of tanh(z), z ~ Normal: normal.log_prob(atanh(value)) - log(1 - value^2)"}
    call(file, "tanh_normal.log_prob", attrs, squashed, {**p, "value": f32([0.3, -0.9, 0.0, 0.99])}, ["loc", "scale"])
    call(file, "tanh.forward_log_det_jacobian", {}, lambda x: distrax.Tanh().forward_log_det_jacobian(x), {"x": f32([0, 0.5, -2, 10, -30])}, ["x"])


def make(file):
    for part in (initializers, layers, recurrent, activations, categorical, gaussians, pooling, networks, unrolled_lstm, factors):
        part(file)
