"""Off-policy returns and losses: rlax where it has them, otherwise the paper's equation in JAX."""

import distrax
import jax
import jax.numpy as jnp
import numpy as np
import rlax

from named import call, f32

fixed = jax.lax.stop_gradient


def returns(file):
    rng = np.random.default_rng(51)
    actions = 3
    for steps, dones in [(6, ()), (9, (2, 6)), (1, ())]:
        discount = np.full(steps, 0.97, np.float32)
        discount[list(dones)] = 0.0
        r, values = f32(rng.normal(size=steps)), f32(rng.normal(size=steps + 1))
        q_tm1, q_t = (f32(rng.normal(size=(steps, actions)) * 2) for _ in range(2))
        a_tm1, a_t = (rng.integers(0, actions, steps, np.int32) for _ in range(2))
        pi_t = f32(jax.nn.softmax(rng.normal(size=(steps, actions))))
        mu_t, c_t, lambda_t = (f32(rng.uniform(0.1, 1, steps)) for _ in range(3))
        rho = f32(np.exp(rng.normal(size=steps)))
        base = {"r_t": r, "discount_t": discount}
        inputs = {"q_t": q_t, "a_t": a_t, **base, "c_t": c_t, "pi_t": pi_t}
        call(file, "general_off_policy_returns_from_action_values", {}, rlax.general_off_policy_returns_from_action_values, inputs, ["q_t", "r_t"])
        sarsa = {"q_tm1": q_tm1, "a_tm1": a_tm1, **base, "q_t": q_t, "a_t": a_t}
        call(file, "sarsa_lambda", {"lambda": 0.8}, lambda **x: rlax.sarsa_lambda(**x, lambda_=0.8), sarsa, ["q_tm1"], "errors")

        def watkins(q_tm1, a_tm1, r_t, discount_t, q_t, a_t):
            greedy = jnp.take_along_axis(q_t, a_t[:, None], 1)[:, 0] == q_t.max(1)
            return rlax.q_lambda(q_tm1, a_tm1, r_t, discount_t, q_t, 0.8 * greedy)

        greedy = {**sarsa, "a_t": np.where(rng.uniform(size=steps) < 0.6, q_t.argmax(1), a_t).astype(np.int32)}
        attrs = {"lambda": 0.8, "formula": "rlax.q_lambda with lambda 0 where a_t is not greedy in q_t"}
        call(file, "watkins_q_lambda", attrs, watkins, greedy, ["q_tm1"], "errors")
        continuous = {"q_tm1": values[:-1], "q_t": q_t[1:, 0], "v_t": values[1:], **base, "log_rhos": f32(np.log(rho[1:]))}
        call(file, "retrace_continuous", {"lambda": 0.9}, lambda **x: rlax.retrace_continuous(**x, lambda_=0.9), continuous, ["q_tm1"], "errors")
        retrace = {"q_tm1": q_tm1, "q_t": q_t, "a_tm1": a_tm1, "a_t": a_t, **base, "pi_t": pi_t, "mu_t": mu_t}
        per_step = {**retrace, "lambda_t": lambda_t}
        call(file, "retrace", {"eps": 1e-8}, lambda lambda_t, **x: rlax.retrace(**x, lambda_=lambda_t), per_step, ["q_tm1"], "errors")
        for name, pair in [("signed_hyperbolic", rlax.SIGNED_HYPERBOLIC_PAIR), ("signed_logp1", rlax.SIGNED_LOGP1_PAIR)]:
            f = lambda **x: rlax.transformed_retrace(**x, lambda_=0.9, tx_pair=pair)
            call(file, "transformed_retrace", {"lambda": 0.9, "tx_pair": name}, f, retrace, ["q_tm1"], "errors")
            f = lambda **x: rlax.transformed_q_lambda(**x, lambda_=0.8 * jnp.ones(steps), tx_pair=pair)
            ql = {k: sarsa[k] for k in ("q_tm1", "a_tm1", "r_t", "discount_t", "q_t")}
            call(file, "transformed_q_lambda", {"lambda": 0.8, "tx_pair": name}, f, ql, ["q_tm1"], "errors")
            for n in (1, 3):
                f = lambda q_t, **x: rlax.transformed_n_step_q_learning(target_q_t=q_t, **x, n=n, tx_pair=pair)
                call(file, "transformed_n_step_q_learning", {"n": n, "tx_pair": name}, f, sarsa, ["q_tm1"], "errors")


def distributional(file):
    rng = np.random.default_rng(52)
    atoms = np.linspace(-2, 2, 9, dtype=np.float32)
    for discount in (0.99, 0.0):
        scalars = {"r_t": f32(rng.normal()), "discount_t": f32(discount)}
        logits = lambda: f32(rng.normal(size=9))
        inputs = {"v_atoms_tm1": atoms, "v_logits_tm1": logits(), **scalars, "v_atoms_t": atoms * 1.5, "v_logits_t": logits()}
        call(file, "categorical_td_learning", {}, rlax.categorical_td_learning, inputs, ["v_logits_tm1"], "loss")
        inputs = {
            "dist_q_tm1": f32(rng.normal(size=(5, 4))),
            "tau_q_tm1": f32((np.arange(5) + 0.5) / 5),
            "a_tm1": np.int32(1),
            **scalars,
            "dist_q_t": f32(rng.normal(size=(5, 4))),
            "probs_a_t": f32(jax.nn.softmax(rng.normal(size=4))),
        }
        for huber in (0.0, 1.0):
            f = lambda **x: rlax.quantile_expected_sarsa(**x, huber_param=huber)
            call(file, "quantile_expected_sarsa", {"huber_param": huber}, f, inputs, ["dist_q_tm1"], "loss")
    inputs = {"dist_src": f32(rng.normal(size=4)), "tau_src": f32(rng.uniform(size=4)), "dist_target": f32(rng.normal(size=7) * 2)}
    for huber in (0.0, 0.5):
        f = lambda **x: rlax.quantile_regression_loss(**x, huber_param=huber)
        call(file, "quantile_regression_loss", {"huber_param": huber}, f, inputs, ["dist_src", "dist_target"], "loss")


def munchausen(file):
    rng = np.random.default_rng(53)
    formula = "r + alpha clip(tau log pi(a), low, 0) + discount sum_a pi'(a) (q'(a) - tau log pi'(a)) - q(a), pi = softmax(q_target / tau)"
    for tau, alpha, low, discount in [(0.03, 0.9, -1.0, 0.99), (0.5, 0.7, -10.0, 0.9), (0.03, 0.9, -1.0, 0.0)]:

        def error(q_tm1, a_tm1, r_t, discount_t, target_q_tm1, q_t):
            # In the paper's own form: tau log softmax(q / tau) = q - v - tau logsumexp((q - v) / tau), v = max q.
            def tau_log_pi(q):
                y = q - q.max()
                return y - tau * jnp.log(jnp.sum(jnp.exp(y / tau)))

            bonus = jnp.clip(tau_log_pi(target_q_tm1)[a_tm1], low, 0)
            value = jnp.sum(jax.nn.softmax(q_t / tau) * (q_t - tau_log_pi(q_t)))
            return fixed(r_t + alpha * bonus + discount_t * value) - q_tm1[a_tm1]

        q = lambda: f32(rng.normal(size=4) * 0.3)
        inputs = {"q_tm1": q(), "a_tm1": np.int32(2), "r_t": f32(rng.normal()), "discount_t": f32(discount), "target_q_tm1": q(), "q_t": q()}
        attrs = {"tau": tau, "munchausen_coefficient": alpha, "clip_value_min": low, "formula": formula}
        call(file, "munchausen_q_learning", attrs, error, inputs, ["q_tm1"], "error")


def continuous(file):
    rng = np.random.default_rng(54)
    for clipping in (None, 0.5, 100.0):
        f = lambda a_t, dqda_t: rlax.dpg_loss(a_t, dqda_t, clipping)
        attrs = {} if clipping is None else {"dqda_clipping": clipping}
        call(file, "dpg_loss", attrs, f, {"a_t": f32(rng.normal(size=3)), "dqda_t": f32(rng.normal(size=3))}, ["a_t"])
    call(file, "dpg_loss", {"dqda_clipping": 0.5, "note": "no slope"}, lambda a_t, dqda_t: rlax.dpg_loss(a_t, dqda_t, 0.5), {"a_t": f32([1, 2]), "dqda_t": f32([0, 0])}, ["a_t"])
    for discount in (0.99, 0.0):
        q_tm1, q_t = f32(rng.normal(size=2)), f32(rng.normal(size=2))
        scalars = {"r_t": f32(rng.normal()), "discount_t": f32(discount)}
        f = lambda q_tm1, r_t, discount_t, q_t: fixed(r_t + discount_t * jnp.minimum(q_t[0], q_t[1])) - q_tm1
        attrs = {"formula": "r + discount min(q_1', q_2') - q_k"}
        call(file, "clipped_double_q_learning", attrs, f, {"q_tm1": q_tm1, **scalars, "q_t": q_t}, ["q_tm1"], "errors")

        def soft(q_tm1, r_t, discount_t, q_t, log_prob_t, temperature):
            return fixed(r_t + discount_t * (jnp.minimum(q_t[0], q_t[1]) - temperature * log_prob_t)) - q_tm1

        inputs = {"q_tm1": q_tm1, **scalars, "q_t": q_t, "log_prob_t": f32(rng.normal()), "temperature": f32(0.3)}
        attrs = {"formula": "r + discount (min(q_1', q_2') - temperature log_prob') - q_k"}
        call(file, "soft_q_learning", attrs, soft, inputs, ["q_tm1", "temperature"], "errors")

        def discrete(q_tm1, a_tm1, r_t, discount_t, q_t, logits_t, temperature):
            policy = distrax.Categorical(logits_t)
            value = jnp.sum(policy.probs * q_t.min(0)) + temperature * policy.entropy()
            return fixed(r_t + discount_t * value) - q_tm1[:, a_tm1]

        q = lambda: f32(rng.normal(size=(2, 4)))
        inputs = {"q_tm1": q(), "a_tm1": np.int32(3), **scalars, "q_t": q(), "logits_t": f32(rng.normal(size=4) * 2), "temperature": f32(0.3)}
        attrs = {"formula": "r + discount (sum_a pi'(a) min_k q_k'(a) + temperature entropy') - q_k(a)"}
        call(file, "discrete_soft_q_learning", attrs, discrete, inputs, ["q_tm1"], "errors")
    inputs = {"log_prob": f32(-1.3), "q": f32([0.7, -0.2]), "temperature": f32(0.3)}
    f = lambda log_prob, q, temperature: fixed(temperature) * log_prob - q.min()
    call(file, "soft_actor_loss", {"formula": "temperature log_prob - min_k q_k"}, f, inputs, ["log_prob", "q", "temperature"], "loss")
    inputs = {"log_temperature": f32(-0.7), "log_prob": f32(1.2)}
    f = lambda log_temperature, log_prob: -jnp.exp(log_temperature) * fixed(log_prob - 2.0)
    attrs = {"target_entropy": -2.0, "formula": "-exp(log_temperature) (log_prob + target_entropy)"}
    call(file, "temperature_loss", attrs, f, inputs, ["log_temperature", "log_prob"], "loss")
    logits = f32(rng.normal(size=4) * 2)
    inputs = {"logits": logits, "q": f32(rng.normal(size=(2, 4))), "temperature": f32(0.3)}

    def actor(logits, q, temperature):
        policy = distrax.Categorical(logits)
        return -fixed(temperature) * policy.entropy() - jnp.sum(policy.probs * fixed(q.min(0)))

    attrs = {"formula": "-temperature entropy - sum_a pi(a) min_k q_k(a)"}
    call(file, "discrete_soft_actor_loss", attrs, actor, inputs, ["logits", "q", "temperature"], "loss")
    f = lambda log_temperature, logits: jnp.exp(log_temperature) * fixed(distrax.Categorical(logits).entropy() - 0.9)
    attrs = {"target_entropy": 0.9, "formula": "exp(log_temperature) (entropy - target_entropy)"}
    call(file, "discrete_temperature_loss", attrs, f, {"log_temperature": f32(-0.7), "logits": logits}, ["log_temperature", "logits"], "loss")
    f = lambda adv_t: fixed(jnp.minimum(jnp.exp(adv_t / 0.5), 20.0))
    attrs = {"beta": 0.5, "max_weight": 20.0, "formula": "min(exp(adv / beta), max_weight)"}
    call(file, "awr_weights", attrs, f, {"adv_t": f32([0, 0.3, -2, 1.4, 1.6, 100])}, ["adv_t"])

    def smoothing(key, a_t):
        noise = jnp.clip(0.2 * jax.random.normal(key, a_t.shape), -0.25, 0.25)
        return jnp.clip(a_t + noise, -1.0, 1.0)

    attrs = {"sigma": 0.2, "noise_clip": 0.25, "low": -1.0, "high": 1.0, "formula": "clip(a + clip(sigma normal(key), -noise_clip, noise_clip), low, high)"}
    call(file, "target_policy_smoothing", attrs, smoothing, {"key": jax.random.PRNGKey(5), "a_t": f32([0, 0.95, -0.95, 0.5, -0.5, 1, -1, 0.2])}, ["a_t"])


def regularizers(file):
    rng = np.random.default_rng(55)
    logits, prior, w_t = f32(rng.normal(size=(5, 3))), f32(rng.normal(size=(5, 3))), f32(rng.uniform(size=5))

    def categorical(logits, prior, w_t):
        return jnp.mean(w_t * distrax.Categorical(logits).kl_divergence(distrax.Categorical(fixed(prior))))

    inputs = {"logits": logits, "prior": prior, "w_t": w_t}
    call(file, "kl_regularizer", {"distribution": "categorical", "formula": "mean(w KL(policy || prior))"}, categorical, inputs, ["logits", "prior"])
    f = lambda loc, scale, w_t: -jnp.mean(w_t * distrax.MultivariateNormalDiag(loc, scale).entropy())
    inputs = {"loc": logits, "scale": f32(rng.uniform(0.2, 2, (5, 3))), "w_t": w_t}
    call(file, "entropy_regularizer", {"distribution": "multivariate_normal_diag", "formula": "-mean(w entropy)"}, f, inputs, ["loc", "scale"])


def make(file):
    for part in (returns, distributional, munchausen, continuous, regularizers):
        part(file)
