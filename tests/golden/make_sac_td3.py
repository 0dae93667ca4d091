"""sac_td3.json: whole gradient steps of SAC and TD3 from windows of steps, with flax, distrax, optax and rlax.

A record has one set of parameters and many batches, each of which takes one step of gradient descent with learning rate 1 from there.
"""

import distrax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import rlax

from golden import File
from named import add, f32

HIDDEN = 4
STEPS, BATCH = 2, 3
LOW, HIGH = np.float32([-2, -1]), np.float32([2, 3])
fixed = jax.lax.stop_gradient


class Net(nn.Module):
    outputs: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.outputs, name="last")(nn.relu(nn.Dense(HIDDEN, name="hidden")(x)))


def apply(net, x, outputs):
    layers = {layer: {"kernel": net[f"{layer}.weight"], "bias": net[f"{layer}.bias"]} for layer in ("hidden", "last")}
    return Net(outputs).apply({"params": layers}, x)


def part(params, name):
    return {key[len(name) + 1 :]: value for key, value in params.items() if key.startswith(name + ".")}


def parts(params, *names):
    return {key: value for key, value in params.items() if key.startswith(tuple(name + "." for name in names))}


def transition(a, window):
    """The first state, its action, the discounted rewards, the discount and the state of what follows, of one window."""
    reward, discount, alive, last = 0.0, 1.0, True, window["next_observation"][0]
    for t in range(STEPS):
        reward += jnp.where(alive, discount * window["reward"][t], 0.0)
        last = jnp.where(alive, window["next_observation"][t], last)
        discount = jnp.where(alive, discount * jnp.where(window["terminated"][t], 0.0, a["discount"]), discount)
        alive = alive & ~(window["terminated"][t] | window["truncated"][t])
    return window["observation"][0], window["action"][0], reward, discount, last


def lanes(x):
    """The windows of a batch, one by one along the leading axis."""
    return {k: jnp.swapaxes(v, 0, 1) for k, v in x.items() if k not in ("weight", "key")}


def unit(action):
    return 2 * (action - LOW) / (HIGH - LOW) - 1


def descend(loss, params):
    """One step of gradient descent: the parameters after it, and what the loss gives beside its value."""
    optimizer = optax.sgd(1.0)
    grads, aux = jax.grad(loss, has_aux=True)(params)
    updates, _ = optimizer.update(grads, optimizer.init(params), params)
    return optax.apply_updates(params, updates), aux


def value(params, name, observation, action):
    return apply(part(params, name), jnp.concatenate([observation, action]), 1)[0]


def critic_pair(params, prefix, observation, action):
    return jnp.stack([value(params, f"{prefix}.{k}", observation, action) for k in (0, 1)])


def squashed(net, observation, noise):
    """The action that standard normal numbers make, and its log-density."""
    loc, log_std = jnp.split(apply(net, observation, 4), 2)
    scale = jnp.exp(jnp.clip(log_std, -20, 2))
    z = loc + scale * noise
    action, log_slope = distrax.Tanh().forward_and_log_det(z)
    return action, jnp.sum(distrax.Normal(loc, scale).log_prob(z) - log_slope)


def noise_of(key, draw):
    return jax.random.normal(jax.random.fold_in(jax.random.fold_in(key, 0), draw), (BATCH, 2))


def sac(params, a, x):
    temperature = jnp.exp(params["log_temperature"])
    discrete = a["actions"] == "discrete"

    def critic_loss(critics):
        def one(window, noise):
            observation, action, reward, discount, after = transition(a, window)
            if discrete:
                q = jnp.stack([apply(part(critics, f"critics.{k}"), observation, 3)[action] for k in (0, 1)])
                q_t = jnp.stack([apply(part(params, f"targets.{k}"), after, 3) for k in (0, 1)])
                policy = distrax.Categorical(apply(part(params, "actor"), after, 3))
                v_t = jnp.sum(policy.probs * q_t.min(0)) + temperature * policy.entropy()
            else:
                q = critic_pair(critics, "critics", observation, unit(action))
                action_t, log_prob = squashed(part(params, "actor"), after, noise)
                v_t = critic_pair(params, "targets", after, action_t).min() - temperature * log_prob
            return fixed(reward + discount * v_t) - q, q.mean()

        errors, q = jax.vmap(one)(lanes(x), noise_of(x["key"], 0))
        loss = jnp.mean(x["weight"] * jnp.sum(optax.l2_loss(errors), 1))
        return loss, (loss, errors, q.mean())

    critics, (loss, errors, q) = descend(critic_loss, parts(params, "critics"))

    def actor_loss(actor):
        def one(observation, noise):
            if discrete:
                policy = distrax.Categorical(apply(part(actor, "actor"), observation, 3))
                q = jnp.stack([apply(part(critics, f"critics.{k}"), observation, 3) for k in (0, 1)]).min(0)
                return -temperature * policy.entropy() - jnp.sum(policy.probs * q), -policy.entropy()
            action, log_prob = squashed(part(actor, "actor"), observation, noise)
            return temperature * log_prob - critic_pair(critics, "critics", observation, action).min(), log_prob

        losses, log_probs = jax.vmap(one)(x["observation"][0], noise_of(x["key"], 1))
        loss = jnp.mean(x["weight"] * losses)
        return loss, (loss, log_probs)

    actor, (policy_loss, log_probs) = descend(actor_loss, parts(params, "actor"))
    target = a["discrete_target_entropy"] * np.log(3) if discrete else 2 * a["target_entropy"]

    def temperature_loss(log_temperature):
        return jnp.mean(x["weight"] * -jnp.exp(log_temperature) * fixed(log_probs + target)), ()

    log_temperature, _ = descend(temperature_loss, params["log_temperature"])
    targets = moved(a, params, critics, "critics", "targets")
    metrics = {"critic_loss": loss, "actor_loss": policy_loss, "entropy": -jnp.mean(x["weight"] * log_probs), "value": q}
    after = {**critics, **actor, "log_temperature": log_temperature, "targets.1.last.weight": targets["targets.1.last.weight"]}
    return {**metrics, "priorities": jnp.abs(errors).mean(1), **named_after(after)}


def moved(a, params, new, name, target):
    """The target networks of a step."""
    new = {target + key[len(name) :]: value for key, value in parts(new, name).items()}
    return optax.incremental_update(new, parts(params, target), a["polyak"])


def named_after(params):
    return {f"after.{k}": v for k, v in params.items()}


def td3(params, a, x):
    count = 2 if a["twin"] else 1

    def critic_loss(critics):
        def one(window, noise):
            observation, action, reward, discount, after = transition(a, window)
            q = jnp.stack([value(critics, f"critics.{k}", observation, unit(action)) for k in range(count)])
            noise = jnp.clip(a["target_noise"] * noise, -a["target_noise_clip"], a["target_noise_clip"])
            action_t = jnp.clip(jnp.tanh(apply(part(params, "target_actor"), after, 2)) + noise, -1, 1)
            q_t = jnp.stack([value(params, f"targets.{k}", after, action_t) for k in range(count)])
            return fixed(reward + discount * q_t.min()) - q, q.mean()

        errors, q = jax.vmap(one)(lanes(x), jax.random.normal(jax.random.fold_in(x["key"], 0), (BATCH, 2)))
        loss = jnp.mean(x["weight"] * jnp.sum(optax.l2_loss(errors), 1))
        return loss, (loss, errors, q.mean())

    critics, (loss, errors, q) = descend(critic_loss, parts(params, "critics"))

    def actor_loss(actor):
        def one(observation):
            action = jnp.tanh(apply(part(actor, "actor"), observation, 2))
            q, slope = jax.value_and_grad(lambda action: value(critics, "critics.0", observation, action))(action)
            return jnp.sum(rlax.dpg_loss(action, slope)), fixed(q)

        losses, q = jax.vmap(one)(x["observation"][0])
        return jnp.mean(x["weight"] * losses), -jnp.mean(x["weight"] * q)

    actor, policy_loss = descend(actor_loss, parts(params, "actor"))
    targets = {**moved(a, params, critics, "critics", "targets"), **moved(a, params, actor, "actor", "target_actor")}
    # With the period 2 a record is of a step in which the actor rests, or of one in which it moves and its loss counts twice.
    if (a["steps"] + 1) % a["policy_period"]:
        actor, policy_loss, targets = parts(params, "actor"), 0.0 * policy_loss, parts(params, "targets", "target_actor")
    metrics = {"critic_loss": loss, "actor_loss": a["policy_period"] * policy_loss, "value": q}
    after = {**critics, **actor, **{k: targets[k] for k in ("targets.0.last.weight", "target_actor.hidden.weight")}}
    return {**metrics, "priorities": jnp.abs(errors).mean(1), **named_after(after)}


def network(rng, name, inputs, outputs):
    weight = lambda *shape: f32(np.round(rng.normal(size=shape) * 0.6, 3))
    return {
        f"{name}.hidden.weight": weight(inputs, HIDDEN),
        f"{name}.hidden.bias": weight(HIDDEN),
        f"{name}.last.weight": weight(HIDDEN, outputs),
        f"{name}.last.bias": weight(outputs),
    }


def batches(rng, count, discrete):
    short = lambda x: f32(np.round(x, 2))
    normal = lambda *shape: short(rng.normal(size=(count, STEPS, BATCH, *shape)))
    ends = rng.uniform(size=(count, STEPS, BATCH))
    action = rng.integers(0, 3, (count, STEPS, BATCH), np.int32) if discrete else short(rng.uniform(LOW, HIGH, (count, STEPS, BATCH, 2)))
    return {
        "observation": normal(2),
        "action": action,
        "reward": normal(),
        "terminated": ends < 0.2,
        "truncated": ends > 0.8,
        "next_observation": normal(2),
        "weight": short(rng.uniform(0.2, 1, (count, BATCH))),
        "key": rng.integers(0, 2**32, (count, 2), np.uint32),
    }


def record(file, op, step, seed, count, attrs):
    rng = np.random.default_rng(seed)
    discrete = attrs.get("actions") == "discrete"
    critic = (2, 3) if discrete else (4, 1)
    actor = 3 if discrete else 4 if op == "sac_step" else 2
    params = network(rng, "actor", 2, actor)
    for k in range(2 if attrs.get("twin", True) else 1):
        params |= network(rng, f"critics.{k}", *critic) | network(rng, f"targets.{k}", *critic)
    if op == "sac_step":
        params["log_temperature"] = f32(-0.7)
    else:
        params |= network(rng, "target_actor", 2, actor)
    x = batches(rng, count, discrete)
    outputs = jax.jit(jax.vmap(lambda x: step(params, attrs, x)))(jax.tree.map(jnp.asarray, x))
    add(file, op, attrs, {**params, **x}, outputs)


if __name__ == "__main__":
    packages = ["rlax", "optax", "flax", "distrax", "jax", "jaxlib", "numpy"]
    file = File("sac_td3", "gradient steps of SAC and TD3", packages)
    both = {"discount": 0.9, "polyak": 0.1}
    entropy = {"target_entropy": -1.5, "discrete_target_entropy": 0.8}
    record(file, "sac_step", sac, 61, 200, {"actions": "box", **both, **entropy})
    record(file, "sac_step", sac, 62, 50, {"actions": "discrete", **both, **entropy})
    noise = {"target_noise": 0.4, "target_noise_clip": 0.5}
    record(file, "td3_step", td3, 63, 200, {**both, **noise, "twin": True, "policy_period": 2, "steps": 1})
    record(file, "td3_step", td3, 64, 20, {**both, **noise, "twin": True, "policy_period": 2, "steps": 0})
    record(file, "td3_step", td3, 65, 50, {**both, **noise, "target_noise": 0.0, "twin": False, "policy_period": 1, "steps": 0})
    file.write()
