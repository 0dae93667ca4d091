"""alphazero.json: searches by mctx whose recurrent function plays tic-tac-toe by the rules, in place of a learned model.

Logits and values are made of a board's words by integer arithmetic, whose results are exact in f32.
"""

import jax
import jax.numpy as jnp
import mctx

from golden import Array, File
from make_mctx import found

ACTIONS = 9
FULL = 0o777
LINES = [0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124]
# The moves that lead to each root, -1 for none.
MOVES = [
    [-1, -1, -1, -1, -1, -1],
    [4, -1, -1, -1, -1, -1],
    [0, 4, -1, -1, -1, -1],
    [0, 1, 4, 8, -1, -1],
    [2, 5, 3, 4, -1, -1],
    [8, 0, 4, 6, 3, -1],
    [0, 4, 8, 2, 6, 3],
    [1, 0, 5, 4, 8, 2],
]
SIMULATIONS = [4, 32, 100]


def step(state, action):
    """The state after a move, the reward of the player who moved, and whether the game is over."""
    own, other, over = state
    stone = jnp.uint32(1) << action.astype(jnp.uint32)
    legal = (own | other) & stone == 0
    mine, theirs = own | stone, other & ~stone
    won = jnp.any(jnp.stack([mine & line == line for line in LINES]))
    ended = won | (mine | theirs == FULL)
    reward = jnp.where(legal, won.astype(jnp.float32), -1.0)
    after = (theirs, mine, ~legal | ended)
    next_state = jax.tree.map(lambda before, new: jnp.where(over, before, new), state, after)
    return next_state, jnp.where(over, 0.0, reward), next_state[2]


def legal_actions(state):
    own, other, over = state
    return ((own | other) >> jnp.arange(ACTIONS, dtype=jnp.uint32) & 1 == 0) | over


def evaluate(state):
    """Logits and value of a board."""
    own, other, _ = state
    word = (own * jnp.uint32(0x9E3779B1)) ^ (other * jnp.uint32(0x85EBCA77))
    each = (word + (jnp.arange(ACTIONS, dtype=jnp.uint32) + 1) * jnp.uint32(0xC2B2AE3D)) * jnp.uint32(0x27D4EB2F)
    logits = (each >> 24).astype(jnp.float32) / 64 - 2
    value = ((word * jnp.uint32(0x165667B1)) >> 24).astype(jnp.float32) / 128 - 1
    return logits, value


def moved(state, action):
    after, _, _ = step(state, jnp.maximum(action, 0))
    return jax.tree.map(lambda before, new: jnp.where(action < 0, before, new), state, after), None


def search(policy, simulations, seed):
    empty = (jnp.uint32(0), jnp.uint32(0), jnp.bool_(False))
    state = jax.vmap(lambda moves: jax.lax.scan(moved, empty, moves)[0])(jnp.array(MOVES))
    logits, value = jax.vmap(evaluate)(state)
    embedding = (state, jnp.zeros(len(MOVES), bool))
    root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=embedding)
    invalid = ~jax.vmap(legal_actions)(state)

    def recurrent_fn(params, key, action, embedding):
        before, ended_before = embedding
        after, reward, over = jax.vmap(step)(before, action)
        logits, value = jax.vmap(evaluate)(after)
        ended = ended_before | over
        output = mctx.RecurrentFnOutput(
            reward=jnp.where(ended_before, 0.0, reward),
            discount=jnp.where(ended, 0.0, -1.0),
            prior_logits=jnp.where(jax.vmap(legal_actions)(after), logits, jnp.finfo(jnp.float32).min),
            value=jnp.where(ended, 0.0, value),
        )
        return output, (after, ended)

    run = {"muzero": mctx.muzero_policy, "gumbel_muzero": mctx.gumbel_muzero_policy}[policy]
    key = jax.random.PRNGKey(seed)
    output = run((), key, root, recurrent_fn, num_simulations=simulations, invalid_actions=invalid)
    return found(output)


def main():
    about = "visits, actions and values of searches with the rules of tic-tac-toe as the model"
    file = File("alphazero", about, ["mctx", "jax", "jaxlib", "numpy"])
    for policy in ["muzero", "gumbel_muzero"]:
        for simulations in SIMULATIONS:
            seed = simulations + 1
            outputs = jax.jit(search, static_argnums=(0, 1))(policy, simulations, seed)
            attrs = {"simulations": simulations, "seed": seed, "moves": MOVES}
            file.add_raw({"op": policy, "attrs": attrs, "outputs": {k: Array(v) for k, v in outputs.items()}})
            print(policy, simulations, flush=True)
    file.write()


if __name__ == "__main__":
    main()
