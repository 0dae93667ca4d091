"""lpg.json: the loss of an update rule by LPG (Oh et al. 2020), and its gradient through the updates of an agent, in jax.

The rule's LSTM is flax's, its gates i, f, g, o. The agent has a table or a small network; its trajectories are given.
"""

import jax
import jax.numpy as jnp
import numpy as np

from golden import File
from named import call, f32

STEPS, LANES, STATES, ACTIONS, PREDICTIONS, EMBEDDING, UNITS, HIDDEN = 4, 2, 5, 3, 4, 3, 5, 3
COSTS = {"entropy": 0.05, "prediction_entropy": 1e-3, "policy_target": 5e-3, "prediction_target": 1e-3}
RULE = ["embedding.0.weight", "embedding.0.bias", "embedding.1.weight", "embedding.1.bias", "core.input", "core.hidden", "core.bias"]
RULE += ["to_policy.weight", "to_policy.bias", "to_prediction.weight", "to_prediction.bias"]


def embedded(rule, y):
    hidden = jax.nn.relu(y @ rule["embedding.0.weight"] + rule["embedding.0.bias"])
    return (hidden @ rule["embedding.1.weight"] + rule["embedding.1.bias"])[0]


def targets(rule, reward, done, probability, y, y_after):
    """The targets of one lane: its steps are the leading axis."""

    def step(state, x):
        reward, done, probability, y, y_after = x
        after = jnp.where(done, 0.0, embedded(rule, y_after))
        seen = jnp.stack([reward, done.astype(jnp.float32), probability, embedded(rule, y), after])
        c, h = jax.tree.map(lambda s: jnp.where(done, 0.0, s), state)
        i, f, g, o = jnp.split(seen @ rule["core.input"] + h @ rule["core.hidden"] + rule["core.bias"], 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (c, h), h

    begin = (jnp.zeros(UNITS), jnp.zeros(UNITS))
    _, states = jax.lax.scan(step, begin, (reward, done, probability, y, y_after), reverse=True)
    features = jax.nn.relu(states)
    policy = (features @ rule["to_policy.weight"] + rule["to_policy.bias"])[:, 0]
    return policy, jax.nn.softmax(features @ rule["to_prediction.weight"] + rule["to_prediction.bias"])


def logits(net, observation):
    if "table" in net:
        return net["table"][observation]
    hidden = jnp.tanh(observation @ net["hidden.weight"] + net["hidden.bias"])
    return hidden @ net["last.weight"] + net["last.bias"]


def chosen(log_probs, action):
    return jnp.take_along_axis(log_probs, action[..., None], -1)[..., 0]


def entropy(logits):
    log_probs = jax.nn.log_softmax(logits)
    return -(jnp.exp(log_probs) * log_probs).sum(-1).mean()


def meta_loss(attrs, x):
    """The loss of the rule in `x`, after the agent's updates by it."""
    rule = {name: x[name] for name in RULE}
    net = lambda name: {key[len(name) + 1 :]: value for key, value in x.items() if key.startswith(name + ".")}

    def update(agent, rollout):
        policy, prediction = agent
        y = jax.nn.softmax(logits(prediction, rollout["observation"]))
        y_after = jax.nn.softmax(logits(prediction, rollout["next_observation"]))
        log_prob = chosen(jax.nn.log_softmax(logits(policy, rollout["observation"])), rollout["action"])
        lanes = jax.vmap(targets, (None, 1, 1, 1, 1, 1), 1)
        pi_hat, y_hat = lanes(rule, rollout["reward"], rollout["terminated"], jnp.exp(log_prob), y, y_after)

        def policy_loss(policy):
            log_prob = chosen(jax.nn.log_softmax(logits(policy, rollout["observation"])), rollout["action"])
            return -(log_prob * pi_hat).mean()

        def prediction_loss(prediction):
            log_y = jax.nn.log_softmax(logits(prediction, rollout["observation"]))
            return 0.5 * (jnp.exp(log_y) * (log_y - jnp.log(y_hat))).sum(-1).mean()

        descend = lambda net, grads, rate: jax.tree.map(lambda p, g: p - rate * g, net, grads)
        policy = descend(policy, jax.grad(policy_loss)(policy), attrs["policy_rate"])
        prediction = descend(prediction, jax.grad(prediction_loss)(prediction), attrs["prediction_rate"])
        costs = (
            -COSTS["entropy"] * entropy(logits(policy, rollout["observation"]))
            - COSTS["prediction_entropy"] * entropy(logits(prediction, rollout["observation"]))
            + COSTS["policy_target"] * (pi_hat**2).mean()
            + COSTS["prediction_target"] * (y_hat**2).sum(-1).mean()
        )
        return (policy, prediction), costs

    rollouts = {name: x[name] for name in ["observation", "next_observation", "action", "reward", "terminated"]}
    (policy, _), costs = jax.lax.scan(update, (net("policy"), net("prediction")), rollouts)
    log_prob = chosen(jax.nn.log_softmax(logits(policy, x["last.observation"])), x["last.action"])
    return costs.mean() - (log_prob * x["advantage"]).mean()


def record(file, seed, updates, kind, rates):
    rng = np.random.default_rng(seed)
    weight = lambda *shape: f32(np.round(rng.normal(size=shape) * 0.5, 2))
    x = {
        "embedding.0.weight": weight(PREDICTIONS, EMBEDDING),
        "embedding.0.bias": weight(EMBEDDING),
        "embedding.1.weight": weight(EMBEDDING, 1),
        "embedding.1.bias": weight(1),
        "core.input": weight(5, 4 * UNITS),
        "core.hidden": weight(UNITS, 4 * UNITS),
        "core.bias": weight(4 * UNITS),
        "to_policy.weight": weight(UNITS, 1),
        "to_policy.bias": weight(1),
        "to_prediction.weight": weight(UNITS, PREDICTIONS),
        "to_prediction.bias": weight(PREDICTIONS),
    }
    for name, outputs in [("policy", ACTIONS), ("prediction", PREDICTIONS)]:
        if kind == "table":
            x[f"{name}.table"] = weight(STATES, outputs)
        else:
            x |= {f"{name}.hidden.weight": weight(2, HIDDEN), f"{name}.hidden.bias": weight(HIDDEN)}
            x |= {f"{name}.last.weight": weight(HIDDEN, outputs), f"{name}.last.bias": weight(outputs)}
    shape = (updates, STEPS, LANES)
    seen = lambda *shape: rng.integers(0, STATES, shape, np.int32) if kind == "table" else weight(*shape, 2)
    x |= {
        "observation": seen(*shape),
        "next_observation": seen(*shape),
        "action": rng.integers(0, ACTIONS, shape, np.int32),
        "reward": weight(*shape),
        "terminated": rng.uniform(size=shape) < 0.2,
        "last.observation": seen(STEPS, LANES),
        "last.action": rng.integers(0, ACTIONS, (STEPS, LANES), np.int32),
        "advantage": weight(STEPS, LANES),
    }
    policy_rate, prediction_rate = rates
    attrs = {"kind": kind, "updates": updates, "policy_rate": policy_rate, "prediction_rate": prediction_rate}
    call(file, "lpg_meta_loss", attrs, lambda **x: meta_loss(attrs, x), x, RULE, "loss")


if __name__ == "__main__":
    file = File("lpg", "losses of LPG rules and their gradients through an agent's updates", ["jax", "jaxlib", "numpy"])
    for updates in (1, 5, 20):
        record(file, 100 + updates, updates, "table", (4.0, 0.4))
        record(file, 200 + updates, updates, "network", (0.5, 0.5))
    file.write()
