"""Returns, advantages and losses: rlax, and PPO as PureJaxRL and Stoix formulate it."""

import jax
import jax.numpy as jnp
import numpy as np
import distrax
import optax
import rlax

from named import add, call, f32


def trajectory(rng, steps, dones=()):
    """Rewards, discounts that are zero where an episode ends, and values before and after each step."""
    discount = np.full(steps, 0.97, np.float32)
    discount[list(dones)] = 0.0
    values = f32(rng.normal(size=steps + 1))
    return {"r_t": f32(rng.normal(size=steps)), "discount_t": discount, "v_tm1": values[:-1], "v_t": values[1:]}


def pick(trajectory, *names):
    return {n: trajectory[n] for n in names}


def returns(file):
    rng = np.random.default_rng(11)
    for steps, dones in [(7, ()), (12, (3, 8)), (5, (4,)), (1, ())]:
        t = trajectory(rng, steps, dones)
        rdv = pick(t, "r_t", "discount_t", "v_t")
        call(file, "discounted_returns", {}, rlax.discounted_returns, rdv, ["r_t", "v_t"])
        call(file, "discounted_returns", {"note": "v_t is one bootstrap value"}, rlax.discounted_returns, {**rdv, "v_t": t["v_t"][-1]}, ["r_t", "v_t"])
        for lambda_ in (0.0, 0.9, 1.0):
            f = lambda r_t, discount_t, v_t: rlax.lambda_returns(r_t, discount_t, v_t, lambda_)
            call(file, "lambda_returns", {"lambda": lambda_}, f, rdv, ["r_t", "v_t"])
        per_step = {**rdv, "lambda_t": f32(rng.uniform(0, 1, steps))}
        f = lambda r_t, discount_t, v_t, lambda_t: rlax.lambda_returns(r_t, discount_t, v_t, lambda_t)
        call(file, "lambda_returns", {}, f, per_step, ["r_t", "v_t"])
        for n in (1, 3, 5):
            for lambda_ in (1.0, 0.8):
                f = lambda r_t, discount_t, v_t: rlax.n_step_bootstrapped_returns(r_t, discount_t, v_t, n, lambda_)
                call(file, "n_step_bootstrapped_returns", {"n": n, "lambda": lambda_}, f, rdv, ["r_t"])
        values = np.append(t["v_tm1"], t["v_t"][-1])
        for lambda_ in (0.0, 0.95, 1.0):
            f = lambda r_t, discount_t, values: rlax.truncated_generalized_advantage_estimation(r_t, discount_t, lambda_, values)
            call(file, "truncated_generalized_advantage_estimation", {"lambda": lambda_}, f, {**pick(t, "r_t", "discount_t"), "values": values}, ["values"])


def off_policy(file):
    rng = np.random.default_rng(12)
    for steps, dones in [(6, ()), (10, (2, 7))]:
        t = trajectory(rng, steps, dones)
        rho = f32(np.exp(rng.normal(size=steps)))
        inputs = {**pick(t, "v_tm1", "v_t", "r_t", "discount_t"), "rho_tm1": rho}
        for lambda_, clip, pg_clip in [(1.0, 1.0, 1.0), (0.9, 1.0, 1.0), (0.95, 2.0, 1.5), (1.0, 0.7, 0.5)]:
            attrs = {"lambda": lambda_, "clip_rho_threshold": clip}
            f = lambda v_tm1, v_t, r_t, discount_t, rho_tm1: rlax.vtrace(v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, clip)
            call(file, "vtrace", attrs, f, inputs, ["v_tm1"], "errors")

            def f(v_tm1, v_t, r_t, discount_t, rho_tm1):
                return rlax.vtrace_td_error_and_advantage(v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, clip, pg_clip)._asdict()

            call(file, "vtrace_td_error_and_advantage", {**attrs, "clip_pg_rho_threshold": pg_clip}, f, inputs)
            leaky = {**attrs, "alpha": 0.6}
            f = lambda v_tm1, v_t, r_t, discount_t, rho_tm1: rlax.leaky_vtrace(v_tm1, v_t, r_t, discount_t, rho_tm1, 0.6, lambda_, clip)
            call(file, "leaky_vtrace", leaky, f, inputs, (), "errors")
        # q_t and c_t belong to times 1..K-1, the others to 1..K.
        extra = {"q_t": f32(rng.normal(size=steps - 1)), "v_t": t["v_t"], "c_t": f32(rng.uniform(0, 1, steps - 1))}
        f = lambda q_t, v_t, r_t, discount_t, c_t: rlax.general_off_policy_returns_from_q_and_v(q_t, v_t, r_t, discount_t, c_t)
        call(file, "general_off_policy_returns_from_q_and_v", {}, f, {**extra, **pick(t, "r_t", "discount_t")})
        actions = 4
        probs = lambda: f32(jax.nn.softmax(rng.normal(size=(steps, actions))))
        pi_t = probs()
        inputs = {
            "q_tm1": f32(rng.normal(size=(steps, actions))),
            "q_t": f32(rng.normal(size=(steps, actions))),
            "a_tm1": rng.integers(0, actions, steps, np.int32),
            "a_t": rng.integers(0, actions, steps, np.int32),
            "r_t": t["r_t"],
            "discount_t": t["discount_t"],
            "pi_t": pi_t,
            "mu_t": f32(rng.uniform(0.1, 1, steps)),
        }
        call(file, "retrace", {"lambda": 0.9, "eps": 1e-8}, lambda **x: rlax.retrace(**x, lambda_=0.9), inputs, ["q_tm1"], "errors")
        ql = {k: inputs[k] for k in ("q_tm1", "a_tm1", "r_t", "discount_t", "q_t")}
        call(file, "q_lambda", {"lambda": 0.8}, lambda **x: rlax.q_lambda(**x, lambda_=0.8), ql, ["q_tm1"], "errors")
        td = pick(t, "v_tm1", "r_t", "discount_t", "v_t")
        call(file, "td_lambda", {"lambda": 0.8}, lambda **x: rlax.td_lambda(**x, lambda_=0.8), td, ["v_tm1"], "errors")


def one_step(file):
    """One-step value learning, for a single transition: callers map it over a batch."""
    rng = np.random.default_rng(13)
    for discount in (0.99, 0.0):
        q = lambda: f32(rng.normal(size=4))
        base = {"q_tm1": q(), "a_tm1": np.int32(2), "r_t": f32(rng.normal()), "discount_t": f32(discount)}
        call(file, "q_learning", {}, rlax.q_learning, {**base, "q_t": q()}, ["q_tm1"], "error")
        call(file, "double_q_learning", {}, rlax.double_q_learning, {**base, "q_t_value": q(), "q_t_selector": q()}, ["q_tm1"], "error")
        call(file, "sarsa", {}, rlax.sarsa, {**base, "q_t": q(), "a_t": np.int32(1)}, ["q_tm1"], "error")
        probs = f32(jax.nn.softmax(q()))
        call(file, "expected_sarsa", {}, rlax.expected_sarsa, {**base, "q_t": q(), "probs_a_t": probs}, ["q_tm1"], "error")
        td = {"v_tm1": q()[0], "r_t": base["r_t"], "discount_t": base["discount_t"], "v_t": q()[0]}
        call(file, "td_learning", {}, rlax.td_learning, td, ["v_tm1"], "error")
        atoms = np.linspace(-2, 2, 9, dtype=np.float32)
        c51 = {
            "q_atoms_tm1": atoms,
            "q_logits_tm1": f32(rng.normal(size=(4, 9))),
            "a_tm1": np.int32(2),
            "r_t": base["r_t"],
            "discount_t": base["discount_t"],
            "q_atoms_t": atoms,
            "q_logits_t": f32(rng.normal(size=(4, 9))),
        }
        call(file, "categorical_q_learning", {}, rlax.categorical_q_learning, c51, ["q_logits_tm1"], "loss")
        call(file, "categorical_double_q_learning", {}, rlax.categorical_double_q_learning, {**c51, "q_t_selector": q()}, ["q_logits_tm1"], "loss")
        quantiles = {
            "dist_q_tm1": f32(rng.normal(size=(5, 4))),
            "tau_q_tm1": f32((np.arange(5) + 0.5) / 5),
            "a_tm1": np.int32(2),
            "r_t": base["r_t"],
            "discount_t": base["discount_t"],
            "dist_q_t_selector": f32(rng.normal(size=(5, 4))),
            "dist_q_t": f32(rng.normal(size=(5, 4))),
        }
        for huber in (0.0, 1.0):
            f = lambda **x: rlax.quantile_q_learning(**x, huber_param=huber)
            call(file, "quantile_q_learning", {"huber_param": huber}, f, quantiles, ["dist_q_tm1"], "loss")
    for low, high in [(-1.0, 1.0), (-3.0, 3.0)]:
        inputs = {"z_p": np.linspace(low, high, 5, dtype=np.float32) + 0.13, "probs": f32(jax.nn.softmax(rng.normal(size=5))), "z_q": np.linspace(-2, 2, 7, dtype=np.float32)}
        call(file, "categorical_l2_project", {}, rlax.categorical_l2_project, inputs, ["probs"], "probs")


def element_functions(file):
    x = f32([0.0, -0.0, 3.0, -3.0, 0.5, -0.25, 100.0, -1000.0, 1e-3])
    call(file, "signed_hyperbolic", {"eps": 1e-3}, lambda x: rlax.signed_hyperbolic(x, 1e-3), {"x": x}, ["x"])
    call(file, "signed_parabolic", {"eps": 1e-3}, lambda x: rlax.signed_parabolic(x, 1e-3), {"x": x}, ["x"])
    call(file, "signed_logp1", {}, lambda x: rlax.signed_logp1(x), {"x": x}, ["x"])
    call(file, "signed_expm1", {}, lambda x: rlax.signed_expm1(x), {"x": f32([0, 1, -1, 2.5, -3])}, ["x"])
    call(file, "l2_loss", {}, lambda x: rlax.l2_loss(x), {"x": x}, ["x"])
    for delta in (1.0, 0.3):
        call(file, "huber_loss", {"delta": delta}, lambda x: rlax.huber_loss(x, delta), {"x": x}, ["x"])
    scalars = f32([0.0, 0.3, -4.9, 5.0, 7.0, -9.0])
    twohot = lambda x: rlax.transform_to_2hot(x, -5.0, 5.0, 11)
    out = call(file, "transform_to_2hot", {"min_value": -5.0, "max_value": 5.0, "num_bins": 11}, twohot, {"x": scalars})
    back = lambda probs: rlax.transform_from_2hot(probs, -5.0, 5.0, 11)
    call(file, "transform_from_2hot", {"min_value": -5.0, "max_value": 5.0, "num_bins": 11}, back, {"probs": np.asarray(out["value"])})


def policy_losses(file):
    rng = np.random.default_rng(14)
    for steps in (6, 1):
        logits = f32(rng.normal(size=(steps, 3)) * 2)
        inputs = {"logits_t": logits, "a_t": rng.integers(0, 3, steps, np.int32), "adv_t": f32(rng.normal(size=steps)), "w_t": f32(rng.uniform(0, 1, steps))}
        call(file, "policy_gradient_loss", {}, rlax.policy_gradient_loss, inputs, ["logits_t"])
        call(file, "entropy_loss", {}, rlax.entropy_loss, {"logits_t": logits, "w_t": inputs["w_t"]}, ["logits_t"])
        ratios = {"prob_ratios_t": f32(rng.uniform(0.5, 1.5, steps)), "adv_t": inputs["adv_t"]}
        f = lambda prob_ratios_t, adv_t: rlax.clipped_surrogate_pg_loss(prob_ratios_t, adv_t, 0.2)
        call(file, "clipped_surrogate_pg_loss", {"epsilon": 0.2}, f, ratios, ["prob_ratios_t"])
        q = {"logits_t": logits, "q_t": f32(rng.normal(size=(steps, 3)))}
        call(file, "qpg_loss", {}, rlax.qpg_loss, q, ["logits_t"])
    # The case of rlax's own tests: two batches of three steps, losses -0.17117467 (rounded there; -(0.5 + 0.1 e^-2) / 3) and 0.19333333.
    logits = f32([[1, 1, 1], [2, 0, 0], [-1, -2, -3]])
    old = f32([[1, 1, 1], [2, 0, 0], [-3, -2, -1]])
    a_t = np.array([0, 1, 2], np.int32)
    losses = []
    for sign in (1, -1):

        def f(logits_t, old_logits_t, a_t, adv_t):
            pick = lambda x: jnp.take_along_axis(jax.nn.log_softmax(x), a_t[:, None], 1)[:, 0]
            return rlax.clipped_surrogate_pg_loss(jnp.exp(pick(logits_t) - pick(old_logits_t)), adv_t, 0.2)

        inputs = {"logits_t": logits, "old_logits_t": old, "a_t": a_t, "adv_t": sign * f32([0.3, 0.2, 0.1])}
        out = call(file, "clipped_surrogate_from_logits", {"epsilon": 0.2}, f, inputs, ["logits_t"], "loss")
        losses.append(float(out["loss"]))
    np.testing.assert_allclose(losses, [-0.17117467, 0.19333333], rtol=2e-5)


GAE = (
    "delta_t = r_t + gamma * (1 - terminated_t) * v_t - v_tm1; "
    "A_t = delta_t + gamma * lambda * (1 - terminated_t) * (1 - truncated_t) * A_{t+1}; "
    "v_t is the value of the observation the step led to, before any reset"
)


def gae_with_truncation(file):
    """The reference is rlax on each stretch between ends; the formula is checked against it."""
    rng = np.random.default_rng(15)
    gamma, lam = 0.99, 0.95
    for steps, terminated, truncated in [(10, (), ()), (10, (3,), (6,)), (12, (4, 5), (0, 11)), (8, (7,), (2, 3)), (6, (2,), (2,))]:
        term, trunc = np.zeros(steps, bool), np.zeros(steps, bool)
        term[list(terminated)] = True
        trunc[list(truncated)] = True
        r, v_tm1, v_t = (f32(rng.normal(size=steps)) for _ in range(3))
        discount = f32(gamma * (1 - term))
        # Inside a stretch the next value is the next step's own.
        ends = np.append(np.flatnonzero((term | trunc)[:-1]), steps - 1)
        parts, begin = [], 0
        for end in ends:
            v_t[begin:end] = v_tm1[begin + 1 : end + 1]
            values = np.append(v_tm1[begin : end + 1], v_t[end])
            parts.append(rlax.truncated_generalized_advantage_estimation(r[begin : end + 1], discount[begin : end + 1], lam, values))
            begin = end + 1
        expected = np.concatenate(parts)
        advantages, acc = np.zeros(steps), 0.0
        for t in reversed(range(steps)):
            delta = r[t] + gamma * (1 - term[t]) * v_t[t] - v_tm1[t]
            acc = advantages[t] = delta + gamma * lam * (1 - term[t]) * (1 - trunc[t]) * acc
        np.testing.assert_allclose(advantages, expected, rtol=1e-5, atol=1e-6)
        inputs = {"r_t": r, "terminated_t": term, "truncated_t": trunc, "v_tm1": v_tm1, "v_t": v_t}
        attrs = {"gamma": gamma, "lambda": lam, "formula": GAE}
        add(file, "gae_with_truncation", attrs, inputs, {"advantages": expected, "targets": expected + v_tm1})


def ppo(file):
    """PureJaxRL's objective: every end is a termination, advantages are normalised over the minibatch, values are clipped about the old ones."""
    rng = np.random.default_rng(16)
    attrs = {"gamma": 0.99, "lambda": 0.95, "formula": "delta_t = r_t + gamma * v_{t+1} * (1 - done_t) - v_t; A_t = delta_t + gamma * lambda * (1 - done_t) * A_{t+1}; v_T = last_value"}
    done = np.array([0, 0, 1, 0, 0, 0, 1, 0], bool)
    inputs = {"r_t": f32(rng.normal(size=8)), "done_t": done, "values": f32(rng.normal(size=8)), "last_value": f32(rng.normal())}

    def gae(r_t, done_t, values, last_value):
        discount = 0.99 * (1.0 - done_t)
        advantages = rlax.truncated_generalized_advantage_estimation(r_t, discount, 0.95, jnp.append(values, last_value))
        return {"advantages": advantages, "targets": advantages + values}

    call(file, "gae_purejaxrl", attrs, gae, inputs)

    def value_loss(values, old_values, targets):
        clipped = old_values + jnp.clip(values - old_values, -0.2, 0.2)
        return 0.5 * jnp.maximum((values - targets) ** 2, (clipped - targets) ** 2).mean()

    batch = 16
    old_values = f32(rng.normal(size=batch))
    values = old_values + f32(rng.normal(size=batch) * 0.3)
    targets = old_values + f32(rng.normal(size=batch))
    formula = "0.5 * mean(max((v - target)^2, (v_old + clip(v - v_old, -eps, eps) - target)^2))"
    call(file, "clipped_value_loss", {"epsilon": 0.2, "formula": formula}, value_loss, {"values": values, "old_values": old_values, "targets": targets}, ["values"], "loss")

    logits = f32(rng.normal(size=(batch, 4)))
    actions = rng.integers(0, 4, batch, np.int32)
    old_log_prob = f32(np.asarray(distrax.Categorical(logits + f32(rng.normal(size=(batch, 4)) * 0.3)).log_prob(actions)))

    def loss(logits, values, actions, old_log_prob, old_values, advantages, targets):
        pi = distrax.Categorical(logits)
        ratio = jnp.exp(pi.log_prob(actions) - old_log_prob)
        normal = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        actor = -jnp.minimum(ratio * normal, jnp.clip(ratio, 0.8, 1.2) * normal).mean()
        value = value_loss(values, old_values, targets)
        entropy = pi.entropy().mean()
        return actor + 0.5 * value - 0.01 * entropy, {"actor": actor, "value": value, "entropy": entropy}

    inputs = dict(logits=logits, values=values, actions=actions, old_log_prob=old_log_prob, old_values=old_values, advantages=f32(rng.normal(size=batch)), targets=targets)
    grads, parts = jax.grad(lambda logits, values: loss(**{**inputs, "logits": logits, "values": values}), (0, 1), has_aux=True)(logits, values)
    total = loss(**inputs)[0]
    attrs = {
        "epsilon": 0.2,
        "value_coefficient": 0.5,
        "entropy_coefficient": 0.01,
        "formula": "actor + 0.5 * value - 0.01 * entropy; actor = -mean(min(ratio * A, clip(ratio, 1 - eps, 1 + eps) * A)), A = (adv - mean) / (population std + 1e-8)",
    }
    add(file, "ppo_loss", attrs, inputs, {"loss": total, **parts}, gradients=dict(zip(("logits", "values"), grads)))


def classification(file):
    rng = np.random.default_rng(19)
    logits = f32(rng.normal(size=(5, 4)) * 3)
    # Confident logits and impossible classes, right and wrong.
    edges = f32([[0, -np.inf, 1], [500, -500, 0]])
    soft = f32(jax.nn.softmax(rng.normal(size=(5, 4))))
    for x, labels, wrt in [(logits, soft, ["logits"]), (edges, f32([[0.5, 0, 0.5], [1, 0, 0]]), [])]:
        call(file, "softmax_cross_entropy", {}, optax.softmax_cross_entropy, {"logits": x, "labels": labels}, wrt)
    for x, labels in [(logits, rng.integers(0, 4, 5, np.int32)), (edges, np.int32([2, 1]))]:
        f = optax.softmax_cross_entropy_with_integer_labels
        call(file, "softmax_cross_entropy_with_integer_labels", {}, f, {"logits": x, "labels": labels}, ["logits"])
    for x, labels in [(logits, f32(rng.uniform(size=(5, 4)))), (f32([0, 200, -200, 200, -200]), f32([1, 1, 1, 0, 0]))]:
        call(file, "sigmoid_binary_cross_entropy", {}, optax.sigmoid_binary_cross_entropy, {"logits": x, "labels": labels}, ["logits"])


def make(file):
    for part in (returns, off_policy, one_step, element_functions, policy_losses, gae_with_truncation, ppo, classification):
        part(file)
