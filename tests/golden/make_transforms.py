"""transforms.json: small programs under jvp, grad, vmap, scan, cond and their compositions.

Each record says in words what the program is, so that a test can write the same one by hand. Matrices do not commute anywhere, so a product of Jacobians in the wrong order shows.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from golden import File
from named import add, f32

T, N = 5, 3


class Programs:
    def __init__(self, file):
        self.file = file

    def add(self, name, program, inputs, outputs):
        """`outputs` maps a name to a function of the inputs, in their order."""
        arrays = {k: jnp.asarray(v) for k, v in inputs.items()}
        values = {k: jax.jit(f)(*arrays.values()) for k, f in outputs.items()}
        add(self.file, name, {"program": program}, arrays, values)


def recurrences(p):
    rng = np.random.default_rng(401)
    a, h0, w = f32(rng.normal(size=(T, N, N)) * 0.8), f32(rng.normal(size=N)), f32(rng.normal(size=N))
    xs, c = f32(rng.normal(size=(T, N))), f32(rng.normal(size=(T, N)))
    da, dh0, dxs = f32(rng.normal(size=(T, N, N))), f32(rng.normal(size=N)), f32(rng.normal(size=(T, N)))

    def linear(a, h0, w):
        last, _ = lax.scan(lambda h, a: (a @ h, None), h0, a)
        return w @ last

    inputs = {"a": a, "h0": h0, "w": w}
    grad = lambda f, i: jax.grad(f, i)
    p.add(
        "scan_linear",
        "h <- a[t] @ h for t = 0..T-1 from h0; loss = w . h",
        inputs,
        {"loss": linear, "grad.a": grad(linear, 0), "grad.h0": grad(linear, 1), "grad.w": grad(linear, 2)},
    )

    def reverse(a, h0, w):
        last, _ = lax.scan(lambda h, a: (a @ h, None), h0, a, reverse=True)
        return w @ last

    p.add(
        "scan_linear_reverse",
        "h <- a[t] @ h for t = T-1..0 from h0; loss = w . h",
        inputs,
        {"loss": reverse, "grad.a": grad(reverse, 0), "grad.h0": grad(reverse, 1), "grad.w": grad(reverse, 2)},
    )

    def product(a, c):
        last, _ = lax.scan(lambda m, a: (a @ m, None), jnp.eye(N), a)
        return jnp.sum(c * last)

    p.add("scan_matrix_product", "m <- a[t] @ m from the identity; loss = sum(c * m)", {"a": a, "c": f32(rng.normal(size=(N, N)))}, {"loss": product, "grad.a": grad(product, 0)})

    def rnn(a, h0, xs, c, reverse=False):
        def body(h, x):
            h = jnp.tanh(a[0] @ h + x)
            return h, h * h

        last, ys = lax.scan(body, h0, xs, reverse=reverse)
        return last, ys, jnp.sum(c * ys) + jnp.sum(last)

    for reverse_ in (False, True):
        order = "T-1..0, stacked outputs in place t" if reverse_ else "0..T-1"
        loss = lambda a, h0, xs, c: rnn(a, h0, xs, c, reverse_)[2]
        inputs = {"a": a[:1], "h0": h0, "xs": xs, "c": c}
        p.add(
            "scan_rnn_reverse" if reverse_ else "scan_rnn",
            f"h <- tanh(a[0] @ h + xs[t]), ys[t] = h * h, for t = {order}; loss = sum(c * ys) + sum(last h); a is captured, not scanned",
            inputs,
            {
                "last": lambda *x: rnn(*x, reverse_)[0],
                "ys": lambda *x: rnn(*x, reverse_)[1],
                "loss": loss,
                "grad.a": grad(loss, 0),
                "grad.h0": grad(loss, 1),
                "grad.xs": grad(loss, 2),
                "grad.c": grad(loss, 3),
            },
        )
    tangents = {"d.a": da[:1], "d.h0": dh0, "d.xs": dxs}

    def pushed(a, h0, xs, c, da, dh0, dxs):
        f = lambda a, h0, xs: rnn(a, h0, xs, c)[:2]
        return jax.jvp(f, (a, h0, xs), (da, dh0, dxs))[1]

    p.add(
        "scan_rnn_jvp",
        "scan_rnn pushed forward in the direction d.*",
        {"a": a[:1], "h0": h0, "xs": xs, "c": c, **tangents},
        {"d.last": lambda *x: pushed(*x)[0], "d.ys": lambda *x: pushed(*x)[1]},
    )

    def batched(a, h0, xs, c):
        one = lambda h0: rnn(a, h0, xs, c)[2]
        return jax.vmap(jax.value_and_grad(one))(h0)

    p.add(
        "vmap_grad_scan",
        "value and gradient of scan_rnn's loss for h0, mapped over 4 h0; a, xs, c are shared",
        {"a": a[:1], "h0": f32(rng.normal(size=(4, N))), "xs": xs, "c": c},
        {"loss": lambda *x: batched(*x)[0], "grad.h0": lambda *x: batched(*x)[1]},
    )

    def mapped(a, h0, xs):
        one = lambda h0, xs: rnn(a, h0, xs, jnp.ones((T, N)))[2]
        return jnp.sum(jax.vmap(one, (0, 1))(h0, xs))

    p.add(
        "grad_vmap_scan",
        "sum over b of scan_rnn's loss with h0[b], xs[:, b] and c = 1: mapped over axis 0 of h0 and axis 1 of xs; gradients for all",
        {"a": a[:1], "h0": f32(rng.normal(size=(4, N))), "xs": f32(rng.normal(size=(T, 4, N)))},
        {"loss": mapped, "grad.a": grad(mapped, 0), "grad.h0": grad(mapped, 1), "grad.xs": grad(mapped, 2)},
    )

    def nested(a, h0, xs):
        def outer(h, x):
            h, _ = lax.scan(lambda h, a: (jnp.tanh(a @ h) + x, None), h, a)
            return h, jnp.sum(h)

        last, ys = lax.scan(outer, h0, xs)
        return jnp.sum(last) + ys @ jnp.arange(1.0, 4.0)

    p.add(
        "scan_in_scan",
        "outer t = 0..2: inner k = 0..T-1: h <- tanh(a[k] @ h) + xs[t]; ys[t] = sum(h); loss = sum(last h) + 1 ys[0] + 2 ys[1] + 3 ys[2]",
        {"a": a, "h0": h0, "xs": xs[:3]},
        {"loss": nested, "grad.a": grad(nested, 0), "grad.h0": grad(nested, 1), "grad.xs": grad(nested, 2)},
    )

    def counted(h0, xs):
        def body(carry, x):
            step, h, best = carry
            h = jnp.where(step % 2 == 0, h * x, h + x)
            return (step + 1, h, jnp.maximum(best, h)), step

        (steps, h, best), ys = lax.scan(body, (0, h0, jnp.full(N, -10.0)), xs)
        return jnp.sum(h) + 2 * jnp.sum(best), steps, ys

    p.add(
        "scan_mixed_carry",
        "carry (step i32 from 0, h, best from -10): h <- h * xs[t] if step is even, else h + xs[t]; best <- max(best, h); step <- step + 1; ys[t] = the step before; loss = sum(h) + 2 sum(best)",
        {"h0": h0, "xs": xs},
        {
            "loss": lambda *x: counted(*x)[0],
            "steps": lambda *x: counted(*x)[1],
            "ys": lambda *x: counted(*x)[2],
            "grad.h0": grad(lambda *x: counted(*x)[0], 0),
            "grad.xs": grad(lambda *x: counted(*x)[0], 1),
        },
    )


def higher_orders(p):
    rng = np.random.default_rng(402)

    def scalar(x):
        last, _ = lax.scan(lambda c, t: (jnp.sin(c * x) + t, None), x, jnp.float32([0.1, 0.2, 0.3, 0.4]))
        return last

    orders = {"value": scalar}
    f = scalar
    for k in range(1, 4):
        f = jax.grad(f)
        orders[f"grad{k}"] = f
    p.add("scan_higher_orders", "c <- sin(c * x) + t for t in .1, .2, .3, .4, from c = x; the value and its first three derivatives", {"x": np.float32(0.7)}, orders)

    def rnn(w, xs):
        last, _ = lax.scan(lambda h, x: (jnp.tanh(w @ h + x), None), jnp.zeros(N), xs)
        return jnp.sum(last**2)

    w, v, xs = (f32(rng.normal(size=s)) for s in [(N, N), (N, N), (T, N)])

    def forward_over_reverse(w, v, xs):
        return jax.jvp(lambda w: jax.grad(rnn)(w, xs), (w,), (v,))[1]

    def reverse_over_reverse(w, v, xs):
        return jax.grad(lambda w: jnp.sum(jax.grad(rnn)(w, xs) * v))(w)

    def reverse_over_forward(w, v, xs):
        return jax.grad(lambda w: jax.jvp(lambda w: rnn(w, xs), (w,), (v,))[1])(w)

    p.add(
        "scan_hessian_vector_product",
        "h <- tanh(w @ h + xs[t]) from 0, loss = sum(h^2); the Hessian for w times v, by jvp of grad, grad of grad, and grad of jvp: all three are equal",
        {"w": w, "v": v, "xs": xs},
        {"value": lambda w, v, xs: rnn(w, xs), "jvp_grad": forward_over_reverse, "grad_grad": reverse_over_reverse, "grad_jvp": reverse_over_forward},
    )

    sizes = [(2, 3), (3,), (3, 1), (1,)]

    def mlp_loss(flat, x, y):
        parts, at = [], 0
        for s in sizes:
            n = int(np.prod(s))
            parts.append(flat[at : at + n].reshape(s))
            at += n
        w1, b1, w2, b2 = parts
        return jnp.mean((jnp.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)

    flat, x, y = f32(rng.normal(size=13)), f32(rng.normal(size=(4, 2))), f32(rng.normal(size=(4, 1)))
    p.add(
        "mlp_hessian",
        "flat holds w1 [2, 3], b1 [3], w2 [3, 1], b2 [1] in that order; loss = mean((tanh(x @ w1 + b1) @ w2 + b2 - y)^2); gradient [13] and Hessian [13, 13] for flat",
        {"flat": flat, "x": x, "y": y},
        {"loss": mlp_loss, "grad": jax.grad(mlp_loss), "hessian": jax.hessian(mlp_loss)},
    )

    def field(x):
        return jnp.stack([x[0] * jnp.sin(x[1]) + x[2] ** 3, jnp.exp(x[0] * x[2]) - x[1]])

    p.add(
        "jacobians",
        "f(x) = [x0 sin(x1) + x2^3, exp(x0 x2) - x1]; the Jacobian [2, 3] both ways, and the second derivatives [2, 3, 3]",
        {"x": f32([0.5, -1.2, 0.8])},
        {"value": field, "jacfwd": jax.jacfwd(field), "jacrev": jax.jacrev(field), "second": jax.jacfwd(jax.jacrev(field))},
    )

    def inner(theta, eta, x):
        return jnp.mean((jnp.tanh(x @ theta) - eta * jnp.sum(x, 1)) ** 2)

    def outer(theta, eta, rate, x, x_val):
        def body(theta, _):
            return theta - rate * jax.grad(inner)(theta, eta, x), None

        theta, _ = lax.scan(body, theta, None, 3)
        return inner(theta, jnp.float32(0.5), x_val)

    inputs = {"theta": f32(rng.normal(size=2)), "eta": np.float32(0.3), "rate": np.float32(0.4), "x": f32(rng.normal(size=(4, 2))), "x_val": f32(rng.normal(size=(3, 2)))}
    p.add(
        "meta_gradient",
        "inner(theta, eta, x) = mean((tanh(x @ theta) - eta * sum_of_each_row(x))^2); three steps theta <- theta - rate * grad_theta inner(theta, eta, x); loss = inner(theta, 0.5, x_val); gradients for theta, eta, rate",
        inputs,
        {"loss": outer, "grad.theta": jax.grad(outer, 0), "grad.eta": jax.grad(outer, 1), "grad.rate": jax.grad(outer, 2)},
    )


def branches(p):
    rng = np.random.default_rng(403)

    def choose(x, y):
        return lax.cond(x > 0, lambda: x**2 * y, lambda: jnp.sin(x) * y)

    value = {"value": choose, "grad.x": jax.grad(choose, 0), "grad.y": jax.grad(choose, 1), "second.x": jax.grad(jax.grad(choose))}
    words = "x^2 * y if x > 0, else sin(x) * y"
    for x in (1.3, -0.7):
        p.add("cond", words + "; value, gradients, second derivative for x", {"x": np.float32(x), "y": np.float32(2.5)}, value)
    xs, y = f32([1.3, -0.7, 0.0, 2.0]), np.float32(2.5)
    p.add(
        "vmap_cond",
        words + ", mapped over x; the sum's gradients",
        {"x": xs, "y": y},
        {
            "value": lambda x, y: jax.vmap(choose, (0, None))(x, y),
            "grad.x": jax.grad(lambda x, y: jnp.sum(jax.vmap(choose, (0, None))(x, y)), 0),
            "grad.y": jax.grad(lambda x, y: jnp.sum(jax.vmap(choose, (0, None))(x, y)), 1),
        },
    )

    def guarded(x):
        return lax.cond(x > 0, jnp.sqrt, lambda x: -x, x)

    p.add("cond_guard", "sqrt(x) if x > 0, else -x, each x alone: the branch not taken (sqrt of 0 or less) must not reach the gradient", {"x": np.float32(-2.0)}, {"value": guarded, "grad": jax.grad(guarded)})

    def scanned(w, h0, xs):
        def body(h, x):
            return lax.cond(jnp.sum(h) > 0, lambda: w @ h - x, lambda: h * x + 1.0), jnp.sum(h) > 0

        last, taken = lax.scan(body, h0, xs)
        return jnp.sum(last * jnp.arange(1.0, 4.0)), taken

    loss = lambda *x: scanned(*x)[0]
    p.add(
        "cond_in_scan",
        "h <- w @ h - xs[t] if sum(h) > 0, else h * xs[t] + 1; taken[t] = sum(h) > 0 before; loss = 1 h0 + 2 h1 + 3 h2 of the last h",
        {"w": f32(rng.normal(size=(N, N))), "h0": f32(rng.normal(size=N)), "xs": f32(rng.normal(size=(8, N)))},
        {"loss": loss, "taken": lambda *x: scanned(*x)[1], "grad.w": jax.grad(loss, 0), "grad.h0": jax.grad(loss, 1), "grad.xs": jax.grad(loss, 2)},
    )

    def switched(i, x):
        return lax.switch(i, [lambda x: x**2, jnp.sin, lambda x: 3 * x], x)

    for i in (-1, 0, 1, 2, 7):
        p.add("switch", "x^2, sin(x), 3 x by index, which is clamped; gradient for x", {"i": np.int32(i), "x": np.float32(0.9)}, {"value": switched, "grad.x": jax.grad(switched, 1)})

    def halve(x, limit):
        return lax.while_loop(lambda c: c[1] > limit, lambda c: (c[0] + 1, c[1] * c[1] * 0.1), (0, x))

    inputs = {"x": np.float32(9.0), "limit": np.float32(0.5)}
    p.add("while_loop", "(k, x) <- (k + 1, 0.1 x^2) while x > limit, from k = 0", inputs, {"k": lambda *x: halve(*x)[0], "x": lambda *x: halve(*x)[1]})
    p.add(
        "while_loop_jvp",
        "the last x of while_loop in direction 1 for x; the number of steps does not move",
        inputs,
        {"d.x": lambda x, limit: jax.jvp(lambda x: halve(x, limit)[1], (x,), (jnp.float32(1),))[1]},
    )
    many = f32([9.0, 0.3, 9.9, 5.0])
    p.add(
        "vmap_while_loop",
        "while_loop mapped over x: each element stops on its own",
        {"x": many, "limit": np.float32(0.5)},
        {"k": lambda x, l: jax.vmap(halve, (0, None))(x, l)[0], "x": lambda x, l: jax.vmap(halve, (0, None))(x, l)[1]},
    )

    def power(x):
        return lax.fori_loop(0, 4, lambda k, c: c * x + k, x)

    p.add("fori_loop", "c <- c * x + k for k = 0..3, from c = x; gradient by reverse mode", {"x": np.float32(1.1)}, {"value": power, "grad": jax.grad(power)})


def mapped(p):
    rng = np.random.default_rng(404)
    x = f32(rng.normal(size=(4, 3)))

    def normalise(row):
        centred = row - lax.pmean(row, "batch")
        return centred / jnp.sqrt(lax.psum(centred**2, "batch") + 1e-3)

    batch = jax.vmap(normalise, axis_name="batch")
    weights = f32(rng.normal(size=(4, 3)))
    loss = lambda x, weights: jnp.sum(weights * batch(x))
    p.add(
        "named_axis",
        "each row, mapped over axis 0 named batch: c = row - pmean(row); value = c / sqrt(psum(c^2) + 1e-3); loss = sum(weights * value)",
        {"x": x, "weights": weights},
        {"value": lambda x, w: batch(x), "loss": loss, "grad.x": jax.grad(loss)},
    )
    gather = jax.vmap(lambda row: lax.all_gather(row, "batch")[lax.axis_index("batch") - 1] * row, axis_name="batch")
    p.add("named_axis_gather", "row i times row i - 1 (the last for i = 0), by all_gather and axis_index", {"x": x}, {"value": gather, "grad.x": jax.grad(lambda x: jnp.sum(gather(x) ** 2))})

    def per_example(w, x, y):
        one = lambda w, x, y: (jnp.tanh(w @ x) - y) ** 2
        return jax.vmap(jax.grad(one), (None, 0, 0))(w, x, y)

    p.add("per_example_gradients", "gradient of (tanh(w . x[b]) - y[b])^2 for w, for each b", {"w": f32(rng.normal(size=3)), "x": x, "y": f32(rng.normal(size=4))}, {"grad": per_example})
    pairwise = jax.vmap(jax.vmap(lambda a, b: jnp.sum((a - b) ** 2), (None, 0)), (0, None))
    p.add(
        "vmap_of_vmap",
        "value[i, j] = sum((a[i] - b[j])^2); the gradient of sum(sqrt(value)) for a",
        {"a": x, "b": f32(rng.normal(size=(2, 3)))},
        {"value": pairwise, "grad.a": jax.grad(lambda a, b: jnp.sum(jnp.sqrt(pairwise(a, b))))},
    )
    axes = jax.vmap(lambda a, b: a @ b, (1, 2), 1)
    p.add("vmap_axes", "value[:, k, :] = a[:, k, :] @ b[:, :, k]: mapped over axis 1 of a [2, 4, 3] and axis 2 of b [3, 5, 4], out along axis 1: [2, 4, 5]", {"a": f32(rng.normal(size=(2, 4, 3))), "b": f32(rng.normal(size=(3, 5, 4)))}, {"value": axes})


def barriers(p):
    rng = np.random.default_rng(405)

    def td(v, r):
        target = lax.stop_gradient(r[:-1] + 0.9 * v[1:])
        return 0.5 * jnp.sum((target - v[:-1]) ** 2)

    p.add("stop_gradient", "0.5 * sum((stop(r[:-1] + 0.9 v[1:]) - v[:-1])^2); gradient for v", {"v": f32(rng.normal(size=5)), "r": f32(rng.normal(size=5))}, {"loss": td, "grad.v": jax.grad(td)})

    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.5, 0.5),))

    def loss(x, w):
        last, _ = lax.scan(lambda h, w: (clipped(h) * w + 0.1 * h, None), x, w)
        return jnp.sum(last)

    p.add(
        "custom_vjp_in_scan",
        "clipped(x) = x whose cotangent is clipped to [-0.5, 0.5]; h <- clipped(h) * w[t] + 0.1 h from x; loss = sum(h)",
        {"x": f32(rng.normal(size=3)), "w": f32(rng.normal(size=(4, 3)) * 2)},
        {"loss": loss, "grad.x": jax.grad(loss, 0), "grad.w": jax.grad(loss, 1)},
    )

    def straight(logits, w):
        probs = jax.nn.softmax(logits)
        hard = jax.nn.one_hot(jnp.argmax(logits), 4)
        return jnp.sum(w * (probs + lax.stop_gradient(hard - probs)) ** 2)

    p.add("straight_through", "q = softmax(l) + stop(one_hot(argmax(l)) - softmax(l)); loss = sum(w * q^2)", {"l": f32(rng.normal(size=4)), "w": f32(rng.normal(size=4))}, {"loss": straight, "grad.l": jax.grad(straight), "grad.w": jax.grad(straight, 1)})


def dynamics(p):
    """A gradient through an environment: twenty steps of the pendulum's equations."""
    rng = np.random.default_rng(406)

    def swing(u, start):
        def body(state, u):
            theta, speed = state
            cost = theta**2 + 0.1 * speed**2 + 0.001 * u**2
            speed = jnp.clip(speed + (15.0 * jnp.sin(theta) + 3.0 * u) * 0.05, -8.0, 8.0)
            theta = theta + speed * 0.05
            return (theta, speed), (cost, theta)

        _, (costs, thetas) = lax.scan(body, (start[0], start[1]), u)
        return jnp.sum(costs), thetas

    loss = lambda *x: swing(*x)[0]
    p.add(
        "pendulum_gradient",
        "(theta, speed) from start: cost = theta^2 + 0.1 speed^2 + 0.001 u[t]^2, then speed <- clip(speed + (15 sin(theta) + 3 u[t]) * 0.05, -8, 8), then theta <- theta + speed * 0.05; thetas[t] = the new theta; loss = sum of costs",
        {"u": f32(rng.normal(size=20)), "start": f32([0.3, -0.2])},
        {"loss": loss, "thetas": lambda *x: swing(*x)[1], "grad.u": jax.grad(loss, 0), "grad.start": jax.grad(loss, 1)},
    )

    def policy_loss(w, start):
        def body(state, _):
            theta, speed = state
            u = 2.0 * jnp.tanh(w @ jnp.stack([jnp.cos(theta), jnp.sin(theta), speed]))
            cost = theta**2 + 0.1 * speed**2 + 0.001 * u**2
            speed = jnp.clip(speed + (15.0 * jnp.sin(theta) + 3.0 * u) * 0.05, -8.0, 8.0)
            return (theta + speed * 0.05, speed), cost

        _, costs = lax.scan(body, (start[0], start[1]), None, 10)
        return jnp.mean(costs)

    batch = lambda w, starts: jnp.mean(jax.vmap(policy_loss, (None, 0))(w, starts))
    p.add(
        "policy_gradient_through_pendulum",
        "pendulum_gradient's step with u = 2 tanh(w . [cos theta, sin theta, speed]), ten steps, mean cost, mean over four starts; gradient and Hessian for w",
        {"w": f32([0.3, -0.8, -0.2]), "starts": f32(rng.normal(size=(4, 2)) * 0.5)},
        {"loss": batch, "grad.w": jax.grad(batch), "hessian.w": jax.hessian(batch)},
    )


def rules(p):
    """Derivatives of the user's. They are not the true ones, so that a result tells whether they were used."""
    rng = np.random.default_rng(407)

    @jax.custom_jvp
    def log1pexp(x):
        return jnp.log1p(jnp.exp(x))

    log1pexp.defjvp(lambda at, dx: (log1pexp(at[0]), jax.nn.sigmoid(at[0]) * dx[0]))
    total = lambda x: jnp.sum(log1pexp(x))
    p.add(
        "custom_jvp",
        "f(x) = log1p(exp(x)) with the tangent sigmoid(x) dx: value, gradient of the sum, and the diagonals of the Hessian by jvp of grad, grad of grad and grad of jvp",
        {"x": f32([-1.0, 0.3, 100.0])},
        {
            "value": log1pexp,
            "grad": jax.grad(total),
            "jvp_grad": lambda x: jax.jvp(jax.grad(total), (x,), (jnp.ones(3),))[1],
            "grad_grad": jax.grad(lambda x: jnp.sum(jax.grad(total)(x))),
            "grad_jvp": jax.grad(lambda x: jnp.sum(jax.jvp(log1pexp, (x,), (jnp.ones(3),))[1])),
            "vmap_grad": jax.vmap(jax.grad(log1pexp)),
        },
    )

    @jax.custom_jvp
    def loop(x, w):
        return lax.scan(lambda h, x: (jnp.tanh(w * h + x), None), 0.0, x)[0]

    @loop.defjvp
    def loop_jvp(at, d):
        (x, w), (dx, dw) = at, d

        def body(carry, x):
            (h, dh), (x, dx) = carry, x
            y = jnp.tanh(w * h + x)
            return (y, 2.0 * (1 - y * y) * (w * dh + dw * h + dx)), None

        return lax.scan(body, (0.0, 0.0), (x, dx))[0]

    p.add(
        "custom_jvp_with_a_loop",
        "h <- tanh(w h + x[t]) from 0; its rule is a scan that carries h and dh, with each step's dh doubled: dh <- 2 (1 - y^2) (w dh + dw h + dx[t])",
        {"x": f32(rng.normal(size=5)), "w": np.float32(0.7)},
        {
            "value": loop,
            "grad.x": jax.grad(loop, 0),
            "grad.w": jax.grad(loop, 1),
            "jvp": lambda x, w: jax.jvp(loop, (x, w), (jnp.ones(5), jnp.float32(1)))[1],
            "second.w": jax.grad(jax.grad(loop, 1), 1),
        },
    )

    @jax.custom_vjp
    def f(x, w):
        return jnp.sin(x * w)

    f.defvjp(
        lambda x, w: (jnp.sin(x * w), (x, w)),
        lambda res, ct: (2.0 * ct * jnp.cos(res[0] * res[1]) * res[1], 3.0 * ct * jnp.cos(res[0] * res[1]) * res[0]),
    )
    xs, w = f32(rng.normal(size=4)), np.float32(0.8)
    each = lambda xs, w: jnp.sum(jax.vmap(f, (0, None))(xs, w))
    steps = lambda xs, w: lax.scan(lambda h, x: (f(h + x, w), h), jnp.float32(0.1), xs)
    carried = lambda xs, w: steps(xs, w)[0] + jnp.sum(steps(xs, w)[1])
    branch = lambda xs, w: lax.cond(w > 0, lambda: jnp.sum(jax.vmap(f, (0, None))(xs, w)), lambda: w)
    batched_branch = lambda xs, w: jnp.sum(jax.vmap(lambda x: lax.cond(x > 0, lambda: f(x, w), lambda: x * w))(xs))
    looped = lambda xs, w: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1], w)), (0, xs[0]))[1]
    p.add(
        "custom_vjp",
        "f(x, w) = sin(x w), whose cotangents are 2 cos(x w) w and 3 cos(x w) x. each = sum of f over xs, mapped with w shared; steps: h <- f(h + xs[t], w) from 0.1, ys[t] = the h before, loss = last h + sum(ys); branch = each if w > 0; "
        "batched = sum over xs of f(x, w) if x > 0 else x w",
        {"xs": xs, "w": w},
        {
            "each": each,
            "each.xs": jax.grad(each, 0),
            "each.w": jax.grad(each, 1),
            "per_example.w": lambda xs, w: jax.vmap(jax.grad(f, 1), (0, None))(xs, w),
            "steps": carried,
            "steps.xs": jax.grad(carried, 0),
            "steps.w": jax.grad(carried, 1),
            "branch.xs": jax.grad(branch, 0),
            "branch.w": jax.grad(branch, 1),
            "batched.xs": jax.grad(batched_branch, 0),
            "batched.w": jax.grad(batched_branch, 1),
            "while": looped,
            "jvp_grad": lambda xs, w: jax.jvp(lambda w: jax.grad(each, 1)(xs, w), (w,), (jnp.float32(1),))[1],
            "grad_grad": lambda xs, w: jax.grad(lambda w: jax.grad(each, 1)(xs, w))(w),
            "hessian.xs": jax.hessian(each, 0),
        },
    )

    @jax.custom_vjp
    def outer(x):
        return f(x, 0.5) * x

    outer.defvjp(lambda x: (f(x, 0.5) * x, x), lambda x, ct: (ct * jax.grad(lambda x: f(x, 0.5) * x)(x) + 1.0,))
    p.add(
        "custom_vjp_nested",
        "outer(x) = f(x, 0.5) x with custom_vjp's f, whose cotangent is that of f(x, 0.5) x by f's rule, plus 1: gradient, and gradient of the gradient",
        {"x": np.float32(0.9)},
        {"grad": jax.grad(outer), "grad_grad": jax.grad(jax.grad(outer))},
    )


def rematerialized(p):
    rng = np.random.default_rng(408)
    policies = {
        "everything": jax.checkpoint_policies.everything_saveable,
        "nothing": jax.checkpoint_policies.nothing_saveable,
        "dots": jax.checkpoint_policies.dots_saveable,
        "names": jax.checkpoint_policies.save_only_these_names("hidden"),
    }
    w, h0, xs = f32(rng.normal(size=(N, N))), f32(rng.normal(size=N)), f32(rng.normal(size=(T, N)))
    for name, policy in policies.items():

        def step(w, h, x):
            hidden = checkpoint_name(w @ h + x, "hidden")
            return jnp.tanh(jnp.sin(hidden)) * h

        def loss(w, h0, xs):
            last, ys = lax.scan(lambda h, x: (lambda y: (y, y[0]))(jax.checkpoint(step, policy=policy)(w, h, x)), h0, xs)
            return jnp.sum(last**2) + jnp.sum(ys)

        p.add(
            "checkpoint",
            f"h <- tanh(sin(w @ h + xs[t])) h from h0, each step checkpointed, saving {name}; loss = sum(last h^2) + sum of every h[0]",
            {"w": w, "h0": h0, "xs": xs},
            {
                "loss": loss,
                "grad.w": jax.grad(loss, 0),
                "grad.h0": jax.grad(loss, 1),
                "grad.xs": jax.grad(loss, 2),
                "hessian.h0": jax.hessian(loss, 1),
                "grad_grad.h0": jax.grad(lambda w, h0, xs: jnp.sum(jax.grad(loss, 1)(w, h0, xs) ** 2), 1),
                "per_example.h0": lambda w, h0, xs: jax.vmap(jax.grad(loss, 1), (None, 0, None))(w, jnp.stack([h0, 2 * h0]), xs),
            },
        )


def loops(p):
    rng = np.random.default_rng(409)
    for length in (1, 2, 5, 8):
        m, c = f32(rng.normal(size=(length, 2, 2))), f32(rng.normal(size=(length, 2, 2)))
        product = lambda m, reverse: lax.associative_scan(lambda a, b: a @ b, m, reverse=reverse)
        loss = lambda m, c, reverse: jnp.sum(c * product(m, reverse))
        p.add(
            "associative_scan",
            "all products m[0] @ .. @ m[i]; with reverse m[n-1] @ .. @ m[i]; loss = sum(c * products); gradients for m",
            {"m": m, "c": c},
            {
                "value": lambda m, c: product(m, False),
                "grad.m": jax.grad(lambda m, c: loss(m, c, False)),
                "reverse.value": lambda m, c: product(m, True),
                "reverse.grad.m": jax.grad(lambda m, c: loss(m, c, True)),
            },
        )
    a, b = f32(rng.normal(size=(7, 3))), f32(rng.normal(size=(7, 3)))
    combine = lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1])
    recurrence = lambda a, b: lax.associative_scan(combine, (a, b))[1]
    p.add(
        "associative_scan_of_pairs",
        "y[t] = a[t] y[t-1] + b[t], by the associative (a, b) . (c, d) = (a c, b c + d); gradients of sum(y^2); and mapped over the columns of a and b",
        {"a": a, "b": b},
        {
            "value": recurrence,
            "grad.a": jax.grad(lambda a, b: jnp.sum(recurrence(a, b) ** 2)),
            "grad.b": jax.grad(lambda a, b: jnp.sum(recurrence(a, b) ** 2), 1),
            "vmap": lambda a, b: jax.vmap(recurrence, (1, 1), 1)(a, b),
        },
    )
    x = f32(rng.normal(size=(7, 2)))
    one = lambda row: (jnp.sum(row), jnp.tanh(row))
    for size in (2, 3, 7, 10):
        batched = lambda x: lax.map(one, x, batch_size=size)
        p.add(
            "map_batched",
            f"(sum(row), tanh(row)) of each row, {size} rows at a time; gradient of sum(sums^2) + sum(tanh^2)",
            {"x": x},
            {"sums": lambda x: batched(x)[0], "rows": lambda x: batched(x)[1], "grad": jax.grad(lambda x: jnp.sum(batched(x)[0] ** 2) + jnp.sum(batched(x)[1] ** 2))},
        )
    empty = lambda h0, xs: lax.scan(lambda h, x: (h * x, h), h0, xs)
    p.add(
        "scan_of_nothing",
        "h <- h * xs[t], ys[t] = the h before, with no xs at all; gradients of sum(last h^2) + sum(ys)",
        {"h0": f32([1.5, -2.0]), "xs": np.zeros((0, 2), np.float32)},
        {
            "last": lambda *x: empty(*x)[0],
            "ys": lambda *x: empty(*x)[1],
            "grad.h0": jax.grad(lambda *x: jnp.sum(empty(*x)[0] ** 2) + jnp.sum(empty(*x)[1])),
            "grad.xs": jax.grad(lambda *x: jnp.sum(empty(*x)[0] ** 2) + jnp.sum(empty(*x)[1]), 1),
        },
    )
    rows, weights = f32(rng.normal(size=(4, 2))), f32(rng.normal(size=(4, 2)))
    for name, pairs in {"rotate": [(i, (i + 1) % 4) for i in range(4)], "swap": [(0, 3), (3, 0), (1, 1), (2, 2)]}.items():
        sent = jax.vmap(lambda row: lax.ppermute(row, "batch", pairs), axis_name="batch")
        p.add(
            "ppermute",
            f"{name}: row i of the batch goes to row j for (i, j) in {pairs}; gradient of sum(weights * sent)",
            {"x": rows, "weights": weights},
            {"value": lambda x, w: sent(x), "grad.x": jax.grad(lambda x, w: jnp.sum(w * sent(x)))},
        )
    reduced = jax.vmap(lambda x: (lax.psum(x**2, "batch") * x, lax.pmean(x, "batch") * x, lax.axis_index("batch") * x), axis_name="batch")
    p.add(
        "named_axis_sums",
        "of each row x: psum(x^2) x, pmean(x) x, axis_index x; gradient of the sum of weights times each, for x",
        {"x": rows, "weights": weights},
        {
            "psum": lambda x, w: reduced(x)[0],
            "pmean": lambda x, w: reduced(x)[1],
            "index": lambda x, w: reduced(x)[2],
            "grad.x": jax.grad(lambda x, w: sum(jnp.sum(w * y) for y in reduced(x))),
        },
    )
    trips = lambda x, n: lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 1.5 + c[1], c[1] + 1), (x, 0))[0]
    p.add(
        "vmap_while_trips",
        "x <- 1.5 x + k for k < n, from k = 0: mapped over x and n, over x alone, over n alone; and the derivative for x of the first",
        {"x": f32([1.0, -2.0, 0.5]), "n": np.int32([0, 5, 2])},
        {
            "both": lambda x, n: jax.vmap(trips)(x, n),
            "x": lambda x, n: jax.vmap(trips, (0, None))(x, n[2]),
            "n": lambda x, n: jax.vmap(trips, (None, 0))(x[0], n),
            "d.both": lambda x, n: jax.jvp(lambda x: jax.vmap(trips)(x, n), (x,), (jnp.ones(3),))[1],
        },
    )
    chosen = lambda i, x: jax.vmap(lambda i, x: lax.switch(i, [lambda x: x**2, jnp.sin, lambda x: 3 * x], x))(i, x)
    p.add(
        "vmap_switch",
        "x^2, sin(x), 3 x by index, which is clamped, mapped over both; gradient of the sum for x",
        {"i": np.int32([-3, 0, 1, 2, 9]), "x": f32([0.9, -0.4, 1.1, 0.2, 0.5])},
        {"value": chosen, "grad.x": jax.grad(lambda i, x: jnp.sum(chosen(i, x)), 1)},
    )


def auxiliary(p):
    """Functions that return something beside what is differentiated."""
    x = f32([0.5, -1.2, 0.8])
    f = lambda x: (jnp.stack([x[0] * jnp.sin(x[1]), x[2] ** 2 * x[0]]), x * 3)
    loss = lambda x: (jnp.sum(f(x)[0] ** 2), x * 3)
    p.add(
        "has_aux",
        "f(x) = [x0 sin(x1), x2^2 x0] with 3 x beside it, loss = sum(f^2) with 3 x beside it; jvp in direction 1, vjp of 1",
        {"x": x},
        {
            "grad": lambda x: jax.grad(loss, has_aux=True)(x)[0],
            "hessian": lambda x: jax.hessian(loss, has_aux=True)(x)[0],
            "jacfwd": lambda x: jax.jacfwd(f, has_aux=True)(x)[0],
            "jacrev": lambda x: jax.jacrev(f, has_aux=True)(x)[0],
            "jvp": lambda x: jax.jvp(f, (x,), (jnp.ones(3),), has_aux=True)[1],
            "vjp": lambda x: jax.vjp(f, x, has_aux=True)[1](jnp.ones(2))[0],
            "aux": lambda x: jax.jacrev(f, has_aux=True)(x)[1],
        },
    )


def trees(p):
    """Jacobians of trees by trees: of every result by every argument."""
    rng = np.random.default_rng(431)
    w, b, x = f32(rng.normal(size=(2, 3))), f32(rng.normal(size=2)), f32(rng.normal(size=3))

    def f(w, b):
        hidden = jnp.tanh(w @ x + b)
        return hidden, jnp.sum(hidden * b) ** 2

    def matrices(jacobian):
        names = [f"{y}.{a}" for y in ("hidden", "sum") for a in ("w", "b")]
        return {n: lambda w, b, i=i: jacobian(f, (0, 1))(w, b)[i // 2][i % 2] for i, n in enumerate(names)}

    outputs = {f"{how}.{n}": g for how, j in (("fwd", jax.jacfwd), ("rev", jax.jacrev)) for n, g in matrices(j).items()}
    second = jax.hessian(lambda w, b: f(w, b)[1], (0, 1))
    for i, n in enumerate(["w.w", "w.b", "b.w", "b.b"]):
        outputs[f"hessian.{n}"] = lambda w, b, i=i: second(w, b)[i // 2][i % 2]
    p.add("jacobians_of_trees", "hidden = tanh(w x + b), sum = (hidden . b)^2; all derivatives by w and b", {"w": w, "b": b, "x": x}, {k: lambda w, b, x, g=g: g(w, b) for k, g in outputs.items()})


if __name__ == "__main__":
    file = File("transforms", "programs under jvp, grad, vmap, scan, cond", ["jax", "jaxlib", "numpy"])
    programs = Programs(file)
    for part in (recurrences, higher_orders, branches, mapped, barriers, dynamics, rules, rematerialized, loops, auxiliary, trees):
        part(programs)
    file.write()
