"""programs.json: programs as users of JAX write them, which compose what the other files have one by one."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from golden import File
from make_transforms import Programs
from named import f32


def recurrent(p, rng):
    """A recurrent network over a batch, its steps recomputed in the pass back."""
    w, u, xs = f32(rng.normal(size=(4, 4)) * 0.5), f32(rng.normal(size=(4, 2))), f32(rng.normal(size=(3, 6, 2)))

    def loss(w, u, xs):
        step = jax.checkpoint(lambda h, x: ((h := jnp.tanh(w @ h + u @ x)), jnp.sum(h * h)))
        return jnp.mean(jax.vmap(lambda xs: jnp.sum(lax.scan(step, jnp.zeros(4), xs)[1]))(xs))

    outputs = {"loss": loss, "grad.w": jax.grad(loss, 0), "grad.u": jax.grad(loss, 1)}
    p.add("remat_rnn", "mean over b of sum over t of |h|^2, h <- tanh(w h + u xs[b, t]) from 0; steps in checkpoint", {"w": w, "u": u, "xs": xs}, outputs)


def meta(p, rng):
    """MAML: the gradient of what is left after some steps of gradient descent, of several tasks."""
    w, rate = f32(rng.normal(size=3)), f32([0.1, 0.05, 0.2])
    x, y = f32(rng.normal(size=(4, 2, 5, 3))), f32(rng.normal(size=(4, 2, 5)))

    def task_loss(w, x, y):
        return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    def adapted(w, rate, x, y):
        step = lambda w, _: (w - rate * jax.grad(task_loss)(w, x[0], y[0]), None)
        return task_loss(lax.scan(step, w, None, length=3)[0], x[1], y[1])

    loss = lambda w, rate, x, y: jnp.mean(jax.vmap(adapted, (None, None, 0, 0))(w, rate, x, y))
    outputs = {"loss": loss, "grad.w": jax.grad(loss, 0), "grad.rate": jax.grad(loss, 1)}
    p.add("maml", "three steps w <- w - rate * grad on x[b, 0], y[b, 0]; the mean over b of the loss mean((tanh(x w) - y)^2) on x[b, 1], y[b, 1]", {"w": w, "rate": rate, "x": x, "y": y}, outputs)


def natural(p, rng):
    """A natural gradient: conjugate gradients with products of the Fisher matrix, by jvp and vjp."""
    w, x = f32(rng.normal(size=(3, 4))), f32(rng.normal(size=(6, 3)))
    actions, advantages = np.array([0, 3, 1, 2, 2, 0], np.int32), f32(rng.normal(size=6))

    def objective(w, x, actions, advantages):
        logp = jax.nn.log_softmax(x @ w)
        return jnp.mean(jnp.take_along_axis(logp, actions[:, None], 1)[:, 0] * advantages)

    def product(w, x, v):
        logits, d = jax.jvp(lambda w: x @ w, (w,), (v,))
        probs = jax.nn.softmax(logits)
        metric = (probs * d - probs * jnp.sum(probs * d, 1, keepdims=True)) / x.shape[0]
        return jax.vjp(lambda w: x @ w, w)[1](metric)[0] + 0.1 * v

    def solve(w, x, actions, advantages):
        g = jax.grad(objective)(w, x, actions, advantages)

        def step(state, _):
            s, r, d, rr = state
            q = product(w, x, d)
            alpha = rr / jnp.sum(d * q)
            s, r = s + alpha * d, r - alpha * q
            after = jnp.sum(r * r)
            return (s, r, r + after / rr * d, after), after

        (s, *_), residuals = lax.scan(step, (jnp.zeros_like(g), g, g, jnp.sum(g * g)), None, length=4)
        return s, residuals

    inputs = {"w": w, "x": x, "actions": actions, "advantages": advantages}
    p.add("natural_gradient", "four steps of conjugate gradients on (F + 0.1) s = grad of mean(log pi(a) advantage); F by jvp and vjp of the logits x w", inputs, {"s": lambda *a: solve(*a)[0], "residuals": lambda *a: solve(*a)[1]})


def evolution(p, rng):
    """Evolution strategies: antithetic perturbations, ranks in place of returns."""
    theta = f32(rng.normal(size=5))
    key = np.array([0, 11], np.uint32)

    def fitness(theta):
        return -jnp.sum((theta - jnp.arange(5.0)) ** 2) + 3 * jnp.cos(4 * theta[0])

    def step(theta, key):
        keys = jax.random.split(key, 8)
        noise = jax.vmap(lambda k: jax.random.normal(k, (5,)))(keys)
        both = jnp.concatenate([noise, -noise])
        returns = jax.vmap(lambda e: fitness(theta + 0.1 * e))(both)
        ranks = jnp.argsort(jnp.argsort(returns)).astype(jnp.float32) / (returns.size - 1) - 0.5
        return theta + 0.5 * (ranks @ both) / (0.1 * returns.size), jnp.max(returns)

    run = lambda theta, key: lax.scan(step, theta, jax.random.split(key, 3))
    p.add("evolution_strategies", "three generations of 8 antithetic pairs, sigma 0.1, rate 0.5, ranks centred", {"theta": theta, "key": key}, {"theta": lambda *a: run(*a)[0], "best": lambda *a: run(*a)[1]})


def subsets(p, rng):
    """Gumbel top-k: a subset without replacement, with a straight-through gradient."""
    logits, value = f32(rng.normal(size=(3, 7))), f32(rng.normal(size=(3, 7)))
    key = np.array([0, 5], np.uint32)

    def one(logits, value, key):
        noisy = logits + jax.random.gumbel(key, (7,))
        _, chosen = lax.top_k(noisy, 3)
        hard = jnp.zeros(7).at[chosen].set(1.0)
        soft = jax.nn.softmax(noisy)
        return jnp.sum((soft + lax.stop_gradient(hard - soft)) * value), chosen

    run = lambda logits, value, key: jax.vmap(one)(logits, value, jax.random.split(key, 3))
    loss = lambda *a: jnp.sum(run(*a)[0])
    p.add("gumbel_top_k", "for each row the three greatest of logits + gumbel, hard forward and softmax backward, times value", {"logits": logits, "value": value, "key": key}, {"loss": loss, "chosen": lambda *a: run(*a)[1], "grad": jax.grad(loss)})


def nested(p, rng):
    """A loop in a loop with a branch and a derivative of one's own."""
    w, xs = f32(rng.normal(size=3)), f32(rng.normal(size=(4, 3, 3)))

    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -0.3, 0.3),))

    def loss(w, xs):
        def inner(h, x):
            h = lax.cond(jnp.sum(h) > 0, lambda: jnp.sin(h * w) + x, lambda: clipped(h) * w - x)
            return h, jnp.max(h)

        def outer(h, xs):
            h, peaks = lax.scan(inner, h, xs, reverse=True)
            return h / (1 + jnp.sum(h * h)), jnp.sum(peaks)

        h, sums = lax.scan(outer, jnp.ones(3), xs)
        return jnp.sum(h) + sums @ jnp.arange(1.0, 5.0)

    outputs = {"loss": loss, "grad.w": jax.grad(loss, 0), "grad.xs": jax.grad(loss, 1), "hvp": lambda w, xs: jax.grad(lambda w: jnp.sum(jax.grad(loss)(w, xs) ** 2))(w)}
    p.add("scans_cond_custom_vjp", "h <- sin(h w) + x if sum(h) > 0, else clipped(h) w - x, from the last of xs[t] to the first; h / (1 + |h|^2) after each t", {"w": w, "xs": xs}, outputs)


def population(p, rng):
    """Population based training: members learn alone, losers copy the best, rates are perturbed, ideas go around a ring."""
    w, rates = f32(rng.normal(size=(4, 3))), f32([0.01, 0.3, 0.1, 0.03])
    target = f32([0.5, -1.0, 2.0])

    def loss(w):
        return jnp.sum((w - target) ** 2 * jnp.array([1.0, 2.0, 0.5]))

    def train(w, rate):
        w, _ = lax.scan(lambda w, _: (w - rate * jax.grad(loss)(w), None), w, None, length=3)
        scores, everyone, everyones = lax.all_gather((loss(w), w, rate), "population")
        rank = jnp.sum(scores < loss(w))
        best = jnp.argmin(scores)
        w, rate = lax.cond(rank >= 2, lambda: (everyone[best], everyones[best] * 1.2), lambda: (w, rate))
        neighbour = lax.ppermute(w, "population", [(i, (i + 1) % 4) for i in range(4)])
        w = w + 0.1 * (neighbour - w)
        return w, rate, lax.pmean(loss(w), "population"), lax.axis_index("population")

    def run(w, rates):
        def generation(state, _):
            w, rates, mean, place = jax.vmap(train, axis_name="population")(*state)
            return (w, rates), (mean, place)

        return lax.scan(generation, (w, rates), None, length=3)

    p.add("population", "three generations: 3 steps of descent, the worse half takes the best with its rate times 1.2, a tenth of the left neighbour", {"w": w, "rates": rates}, {"w": lambda *a: run(*a)[0][0], "rates": lambda *a: run(*a)[0][1], "means": lambda *a: run(*a)[1][0], "places": lambda *a: run(*a)[1][1]})


def implicit(p, rng):
    """A fixed point by a while loop, differentiated implicitly by another."""
    w, b = f32(rng.normal(size=(3, 3)) * 0.3), f32(rng.normal(size=(4, 3)))

    def solve(f, x0):
        far = lambda s: (jnp.max(jnp.abs(s[0] - s[1])) > 1e-6) & (s[2] < 200)
        return lax.while_loop(far, lambda s: (f(s[0]), s[0], s[2] + 1), (f(x0), x0, 0))[0]

    f = lambda w, b, x: jnp.tanh(w @ x + b)

    @jax.custom_vjp
    def fixed(w, b):
        return solve(lambda x: f(w, b, x), jnp.zeros(3))

    def forward(w, b):
        x = fixed(w, b)
        return x, (w, b, x)

    def backward(saved, ct):
        w, b, x = saved
        _, by_x = jax.vjp(lambda x: f(w, b, x), x)
        _, by_wb = jax.vjp(lambda w, b: f(w, b, x), w, b)
        return by_wb(solve(lambda u: ct + by_x(u)[0], ct))

    fixed.defvjp(forward, backward)
    points = lambda w, b: jax.vmap(fixed, (None, 0))(w, b)
    loss = lambda w, b: jnp.sum(points(w, b) ** 3)
    p.add("implicit_fixed_point", "x = tanh(w x + b) for each row of b; loss = sum(x^3)", {"w": w, "b": b}, {"x": points, "grad.w": jax.grad(loss, 0), "grad.b": jax.grad(loss, 1)})


def mixed(p, rng):
    """Mixed precision: bf16 values and products, f32 sums, parameters and losses, a scaled loss."""
    w, v = f32(rng.normal(size=(8, 16)) * 0.4), f32(rng.normal(size=16) * 0.4)
    x, y = f32(rng.normal(size=(32, 8))), f32(rng.normal(size=32))
    half = lambda x: x.astype(jnp.bfloat16)

    def loss(w, v, x, y):
        h = jnp.dot(half(x), half(w), preferred_element_type=jnp.float32)
        h = half(jnp.maximum(h, 0.0))
        out = jnp.dot(h, half(v), preferred_element_type=jnp.float32)
        return jnp.mean((out - y) ** 2)

    def step(w, v, x, y):
        scale = 1024.0
        grads = jax.grad(lambda w, v: scale * loss(w, v, x, y), (0, 1))(w, v)
        finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(g)) for g in grads]))
        return [jnp.where(finite, p - 0.1 * g / scale, p) for p, g in zip((w, v), grads)]

    p.add("mixed_precision", "bf16 operands, f32 products and sums; the loss times 1024, a step of 0.1", {"w": w, "v": v, "x": x, "y": y}, {"loss": loss, "w": lambda *a: step(*a)[0], "v": lambda *a: step(*a)[1]})


def bits(p, rng):
    """Integers and bits."""
    x = rng.integers(0, 2**32, size=8, dtype=np.uint32)
    a = f32(np.abs(rng.normal(size=8)) + 0.1)

    def xorshift(x):
        x = x ^ (x << 13)
        x = x ^ (x >> 17)
        return x ^ (x << 5)

    def reverse(x):
        for shift, mask in [(1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)]:
            x = ((x >> shift) & jnp.uint32(mask)) | ((x & jnp.uint32(mask)) << shift)
        return x

    def high(x, y):
        a, b, c, d = x >> 16, x & 0xFFFF, y >> 16, y & 0xFFFF
        middle = a * d + ((b * d) >> 16)
        low = b * c + (middle & 0xFFFF)
        return a * c + (middle >> 16) + (low >> 16)

    def root(a):
        guess = lax.bitcast_convert_type(0x5F3759DF - (lax.bitcast_convert_type(a, jnp.int32) >> 1), jnp.float32)
        return guess * (1.5 - 0.5 * a * guess * guess)

    outputs = {
        "xorshift": lambda x, a: lax.fori_loop(0, 10, lambda _, x: xorshift(x), x),
        "gray": lambda x, a: x ^ (x >> 1),
        "reversed": lambda x, a: reverse(x),
        "ones": lambda x, a: lax.population_count(x),
        "rotated": lambda x, a: (x << (x % 31 + 1)) | (x >> (31 - x % 31)),
        "high": lambda x, a: high(x, x[::-1]),
        "packed": lambda x, a: jnp.sum((x % 3 == 0).astype(jnp.uint32) << jnp.arange(8, dtype=jnp.uint32), dtype=jnp.uint32),
        "root": lambda x, a: root(a),
        "quantized": lambda x, a: jnp.clip(jnp.round(a * 100 - 90), -128, 127).astype(jnp.int8),
        "signed": lambda x, a: lax.bitcast_convert_type(x, jnp.int32) // 7 * 3 % 11,
        "shifted": lambda x, a: lax.bitcast_convert_type(x, jnp.int32) >> 5,
        "bytes": lambda x, a: lax.bitcast_convert_type(x, jnp.uint8),
    }
    p.add("bits", "xorshift ten times; Gray code; bits reversed; population count; rotated left by x % 31 + 1; high word of x times x reversed; x % 3 == 0 packed; fast inverse square root; i8; floor division and modulo; arithmetic shift; bytes", {"x": x, "a": a}, outputs)


def buffers(p, rng):
    """A ring buffer in a loop, prioritized draws from it, and a gradient through what was stored."""
    w, xs = f32(rng.normal(size=3)), f32(rng.normal(size=(7, 3)))
    key = np.array([0, 3], np.uint32)

    def loss(w, xs, key):
        def push(state, x):
            buffer, place = state
            buffer = lax.dynamic_update_slice(buffer, (x * w)[None], (place, 0))
            return (buffer, (place + 1) % 4), None

        (buffer, _), _ = lax.scan(push, (jnp.zeros((4, 3)), 0), xs)
        priority = jnp.sum(jnp.abs(lax.stop_gradient(buffer)), 1)
        drawn = jnp.searchsorted(jnp.cumsum(priority), jax.random.uniform(key, (6,)) * jnp.sum(priority))
        weight = 1 / (priority[drawn] / jnp.sum(priority) * 4)
        return jnp.sum(weight[:, None] * buffer[drawn] ** 2), drawn

    p.add("prioritized_ring", "xs[t] * w into a ring of 4; six draws by the sums of magnitudes; weighted squares of what was drawn", {"w": w, "xs": xs, "key": key}, {"loss": lambda *a: loss(*a)[0], "drawn": lambda *a: loss(*a)[1], "grad": lambda *a: jax.grad(loss, has_aux=True)(*a)[0]})


def traces(p, rng):
    """Advantages by an associative scan, in a loss whose gradient is clipped for each example."""
    w, xs, rewards = f32(rng.normal(size=3)), f32(rng.normal(size=(2, 6, 3))), f32(rng.normal(size=(2, 6)))
    ends = np.array([[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0]], np.bool_)

    def advantages(values, rewards, ends):
        discount = jnp.where(ends[:-1], 0.0, 0.99)
        deltas = rewards[:-1] + discount * values[1:] - values[:-1]
        join = lambda later, earlier: (earlier[0] * later[0], earlier[1] + earlier[0] * later[1])
        return lax.associative_scan(join, (discount * 0.95, deltas), reverse=True)[1]

    def one(w, xs, rewards, ends):
        values = jnp.tanh(xs @ w)
        return jnp.mean(advantages(values, rewards, ends) ** 2)

    def clipped(w, xs, rewards, ends):
        grads = jax.vmap(jax.grad(one), (None, 0, 0, 0))(w, xs, rewards, ends)
        norms = jnp.linalg.norm(grads, axis=1, keepdims=True)
        return jnp.mean(grads * jnp.minimum(1.0, 0.5 / norms), 0)

    hessian = lambda w, *a: jax.hessian(lambda w: one(w, a[0][0], a[1][0], a[2][0]))(w)
    p.add("gae_clipped", "mean of squared GAE(0.99, 0.95) of values tanh(xs w); the gradient of each example clipped to norm 0.5, averaged; the first one's Hessian", {"w": w, "xs": xs, "rewards": rewards, "ends": ends}, {"grad": clipped, "hessian": hessian})


SUMS = ["ij,jk->ik", "bij,bjk->bik", "bqhd,bkhd->bhqk", "ij,ij->", "ij->ji", "ii->i", "ii", "iji->j", "i,j->ij", "ij,jk,kl->il", "ab,ac,ad->bcd", "ij,k->i", "ba"]


def sums(p, rng):
    """Einstein's convention, with gradients of the sums of sines."""
    extents = dict(zip("abcdhijklq", [2, 3, 2, 4, 2, 3, 3, 4, 2, 5]))
    for subscripts in SUMS:
        names = subscripts.split("->")[0].split(",")
        inputs = {f"x{i}": f32(rng.normal(size=[extents[c] for c in name])) for i, name in enumerate(names)}
        f = lambda *xs, s=subscripts: jnp.einsum(s, *xs)
        loss = lambda *xs, f=f: jnp.sum(jnp.sin(f(*xs)))
        grads = {f"grad.x{i}": jax.grad(loss, i) for i in range(len(names))}
        p.add("einsum", subscripts, inputs, {"value": f, **grads})


if __name__ == "__main__":
    file = File("programs", "programs as users of JAX write them", ["jax", "jaxlib", "numpy"])
    programs = Programs(file)
    for number, part in enumerate((recurrent, meta, natural, evolution, subsets, nested, population, implicit, mixed, bits, buffers, traces, sums)):
        part(programs, np.random.default_rng(500 + number))
    file.write()
