"""Steps a second of the meta-training of LPG (Oh et al. 2020) in JAX, as groove has it: agents with tables in grid worlds of their own, under `vmap`.

    python meta_lpg.py [--calls 3] [--agents 64] [--lanes 16] [--remat]

The task, the sizes and the updates are those of `lpg-gridworlds`: worlds of `small`, five updates of 20 steps and a rollout by which the rule is judged. A life that
is over gives way to a new one. It prints a line of JSON: the seconds of compiling, and the steps a second of each call.
"""

import argparse
import json
import time

import jax
import jax.numpy as jnp
import optax

SIZE, OBJECTS, WALLS, ACTIONS = 6, 3, 7, 9
CELLS = SIZE * SIZE
STATES = CELLS << OBJECTS
PREDICTIONS, EMBEDDING, UNITS = 8, 16, 64
UNROLL, UPDATES, CALL = 20, 5, 10
DOWN = jnp.array([-1, 0, 1, 0, 0, -1, 1, 1, -1])
RIGHT = jnp.array([0, 1, 0, -1, 0, 1, 1, -1, -1])


def inside(size):
    cells = jnp.arange(CELLS)
    return (cells // SIZE < size) & (cells % SIZE < size)


def draw_cells(key, free, count):
    return jax.lax.top_k(jnp.where(free, jax.random.uniform(key, (CELLS,)), -1.0), count)[1]


def log_uniform(key, shape, low, high):
    return jnp.exp(jax.random.uniform(key, shape) * jnp.log(high / low) + jnp.log(low))


def draw_task(key):
    keys = jax.random.split(key, 8)
    size = jax.random.randint(keys[0], (), 4, SIZE + 1)
    used = jnp.arange(OBJECTS) < jax.random.randint(keys[1], (), 1, OBJECTS + 1)
    limit = jnp.round(log_uniform(keys[2], (), 20.0, 100.0)).astype(jnp.int32)
    walls = jnp.zeros(CELLS, bool).at[draw_cells(keys[3], jnp.ones(CELLS, bool), WALLS)].set(True)
    places = draw_cells(keys[4], inside(size) & ~walls, OBJECTS + 1)
    rewards = jax.random.uniform(keys[5], (OBJECTS,))
    return {
        "size": size,
        "used": used,
        "limit": limit,
        "walls": walls,
        "start": places[0],
        "cell": places[1:],
        "reward": jnp.where(jnp.arange(OBJECTS) == 0, rewards, 2.0 * rewards - 1.0),
        "terminate": log_uniform(keys[6], (OBJECTS,), 0.01, 1.0),
        "respawn": log_uniform(keys[7], (OBJECTS,), 0.001, 0.1),
    }


def begin(task):
    return {"row": task["start"] // SIZE, "column": task["start"] % SIZE, "there": task["used"], "time": jnp.int32(0)}


def observe(state):
    bits = jnp.where(state["there"], 1 << jnp.arange(OBJECTS), 0).sum()
    return state["row"] * SIZE + state["column"] + bits * CELLS


def step(task, state, action, key):
    end_key, respawn_key = jax.random.split(key)
    row = jnp.clip(state["row"] + DOWN[action], 0, task["size"] - 1)
    column = jnp.clip(state["column"] + RIGHT[action], 0, task["size"] - 1)
    blocked = task["walls"][row * SIZE + column]
    row, column = jnp.where(blocked, state["row"], row), jnp.where(blocked, state["column"], column)
    collected = state["there"] & (task["cell"] == row * SIZE + column)
    reward = jnp.where(collected, task["reward"], 0.0).sum()
    terminated = (collected & jax.random.bernoulli(end_key, task["terminate"])).any()
    appears = jax.random.bernoulli(respawn_key, task["respawn"]) & task["used"] & ~state["there"]
    after = {"row": row, "column": column, "there": (state["there"] & ~collected) | appears, "time": state["time"] + 1}
    truncated = (after["time"] >= task["limit"]) & ~terminated
    done = terminated | truncated
    fresh = begin(task)
    return jax.tree.map(lambda a, b: jnp.where(done, a, b), fresh, after), (reward, terminated, truncated, observe(after))


def roll(task, policy, states, key):
    """A rollout of all lanes of an agent."""

    def one(states, key):
        act_key, step_key = jax.random.split(key)
        observation = jax.vmap(observe)(states)
        action = jax.random.categorical(act_key, jax.lax.stop_gradient(policy)[observation])
        keys = jax.random.split(step_key, observation.shape[0])
        states, (reward, terminated, truncated, after) = jax.vmap(step, (None, 0, 0, 0))(task, states, action, keys)
        return states, {"observation": observation, "action": action, "reward": reward, "terminated": terminated, "truncated": truncated, "after": after}

    return jax.lax.scan(one, states, jax.random.split(key, UNROLL))


def init_rule(key):
    lecun, keys = jax.nn.initializers.lecun_normal(), jax.random.split(key, 12)
    return {
        "w1": lecun(keys[0], (PREDICTIONS, EMBEDDING)),
        "b1": jnp.zeros(EMBEDDING),
        "w2": lecun(keys[1], (EMBEDDING, 1)),
        "b2": jnp.zeros(1),
        "input": lecun(keys[2], (5, 4 * UNITS)),
        "hidden": jax.nn.initializers.orthogonal()(keys[3], (UNITS, 4 * UNITS)),
        "bias": jnp.zeros(4 * UNITS),
        "policy": lecun(keys[4], (UNITS, 1)),
        "prediction": lecun(keys[5], (UNITS, PREDICTIONS)),
    }


def embed(rule, y):
    return (jax.nn.relu(y @ rule["w1"] + rule["b1"]) @ rule["w2"] + rule["b2"])[..., 0]


def targets(rule, reward, done, probability, y, y_after):
    seen = jnp.stack([reward, done.astype(jnp.float32), probability, embed(rule, y), jnp.where(done, 0.0, embed(rule, y_after))], -1)
    driven = seen @ rule["input"] + rule["bias"]

    def one(state, x):
        driven, done = x
        c, h = jax.tree.map(lambda s: jnp.where(done[:, None], 0.0, s), state)
        i, f, g, o = jnp.split(driven + h @ rule["hidden"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (c, h), h

    zero = jnp.zeros((reward.shape[1], UNITS))
    _, states = jax.lax.scan(one, (zero, zero), (driven, done), reverse=True)
    features = jax.nn.relu(states)
    return (features @ rule["policy"])[..., 0], jax.nn.softmax(features @ rule["prediction"])


def chosen(log_probs, action):
    return jnp.take_along_axis(log_probs, action[..., None], -1)[..., 0]


def entropy(logits):
    log_probs = jax.nn.log_softmax(logits)
    return -(jnp.exp(log_probs) * log_probs).sum(-1).mean()


def descend(table, grads, rate):
    norm = jnp.sqrt((grads**2).sum())
    return table - rate * grads * jnp.where(norm < 0.5, 1.0, 0.5 / norm)


def update(rule, task, agent, key):
    policy, prediction, states = agent["policy"], agent["prediction"], agent["states"]
    states, seen = roll(task, policy, states, key)
    done = seen["terminated"] | seen["truncated"]
    probability = jnp.exp(chosen(jax.nn.log_softmax(policy[seen["observation"]]), seen["action"]))
    y, y_after = jax.nn.softmax(prediction[seen["observation"]]), jax.nn.softmax(prediction[seen["after"]])
    pi_hat, y_hat = targets(rule, seen["reward"], done, probability, y, y_after)

    def policy_loss(policy):
        return -(chosen(jax.nn.log_softmax(policy[seen["observation"]]), seen["action"]) * pi_hat).mean()

    def prediction_loss(prediction):
        log_y = jax.nn.log_softmax(prediction[seen["observation"]])
        return 0.5 * (jnp.exp(log_y) * (log_y - jnp.log(jnp.maximum(y_hat, 1e-8)))).sum(-1).mean()

    policy = descend(policy, jax.grad(policy_loss)(policy), 40.0)
    prediction = descend(prediction, jax.grad(prediction_loss)(prediction), 4.0)
    cost = (
        -0.05 * entropy(policy[seen["observation"]])
        - 1e-3 * entropy(prediction[seen["observation"]])
        + 5e-3 * (pi_hat**2).mean()
        + 1e-3 * (y_hat**2).sum(-1).mean()
    )
    return {"policy": policy, "prediction": prediction, "states": states}, cost


def advantages(value, seen):
    v, after = value[seen["observation"]], value[seen["after"]]
    done = seen["terminated"] | seen["truncated"]
    delta = seen["reward"] + 0.99 * jnp.where(seen["terminated"], 0.0, after) - v

    def one(carry, x):
        delta, done = x
        carry = delta + 0.99 * 0.95 * jnp.where(done, 0.0, carry)
        return carry, carry

    return jax.lax.scan(one, jnp.zeros(v.shape[1]), (delta, done), reverse=True)[1]


VALUE = optax.adam(1e-3)


def live(rule, life, remat):
    """Some updates of an agent, the loss of the rule, and the life after them."""
    key, *keys = jax.random.split(life["key"], UPDATES + 2)
    one = lambda agent, key: update(rule, life["task"], agent, key)
    agent, costs = jax.lax.scan(jax.checkpoint(one) if remat else one, life["agent"], jnp.stack(keys[:-1]))
    states, seen = roll(life["task"], agent["policy"], agent["states"], keys[-1])
    advantage = jax.lax.stop_gradient(advantages(life["value"], seen))
    target = advantage + life["value"][seen["observation"]]
    grads = jax.grad(lambda value: 0.5 * ((value[seen["observation"]] - target) ** 2).mean())(life["value"])
    changes, value_opt = VALUE.update(grads, life["value_opt"])
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    loss = -(chosen(jax.nn.log_softmax(agent["policy"][seen["observation"]]), seen["action"]) * advantage).mean() + costs.mean()
    after = {**life, "agent": {**agent, "states": states}, "value": life["value"] + changes, "value_opt": value_opt, "left": life["left"] - UPDATES, "key": key}
    return loss, jax.lax.stop_gradient((after, seen["reward"].mean()))


def new_life(key, lanes):
    task_key, left_key, key = jax.random.split(key, 3)
    task = draw_task(task_key)
    states = jax.vmap(lambda _: begin(task))(jnp.arange(lanes))
    value = jnp.zeros(STATES)
    agent = {"policy": jnp.zeros((STATES, ACTIONS)), "prediction": jnp.zeros((STATES, PREDICTIONS)), "states": states}
    left = jnp.round(log_uniform(left_key, (), 50.0, 250.0)).astype(jnp.int32)
    return {"task": task, "agent": agent, "value": value, "value_opt": VALUE.init(value), "left": left, "key": key}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--agents", type=int, default=64)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--remat", action="store_true")
    options = parser.parse_args()
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3))

    def iterate(state, _):
        rule, opt, lives = state

        def loss(rule):
            losses, lived = jax.vmap(lambda life: live(rule, life, options.remat))(lives)
            return losses.mean(), lived

        grads, (lives, reward) = jax.grad(loss, has_aux=True)(rule)
        changes, opt = optimizer.update(grads, opt)
        rule = optax.apply_updates(rule, changes)

        def next_life(life):
            key, begin_key = jax.random.split(life["key"])
            over = life["left"] <= 0
            return jax.tree.map(lambda a, b: jnp.where(over, a, b), new_life(begin_key, options.lanes), {**life, "key": key})

        return (rule, opt, jax.vmap(next_life)(lives)), reward.mean()

    call = jax.jit(lambda state: jax.lax.scan(iterate, state, None, CALL), donate_argnums=0)
    rule_key, lives_key = jax.random.split(jax.random.key(0))
    rule = init_rule(rule_key)
    lives = jax.vmap(lambda key: new_life(key, options.lanes))(jax.random.split(lives_key, options.agents))
    state = (rule, optimizer.init(rule), lives)
    began = time.perf_counter()
    call = call.lower(state).compile()
    compile_seconds = time.perf_counter() - began
    steps, speeds = CALL * options.agents * options.lanes * UNROLL * (UPDATES + 1), []
    for _ in range(options.calls):
        began = time.perf_counter()
        state, rewards = call(state)
        rewards.block_until_ready()
        speeds.append(steps / (time.perf_counter() - began))
    print(json.dumps({"compile_seconds": compile_seconds, "steps_per_second": speeds, "reward": float(rewards.mean())}))


if __name__ == "__main__":
    main()
