"""The peer for replay: flashbax's trajectory buffers in one jitted loop that adds, samples and sets priorities.

The sampled batch is the loop's carry, so that it is made whole in every round.
"""

import argparse

from timing import measure, report

import flashbax
import jax
import jax.numpy as jnp

OBSERVATIONS = {"small": ((4,), jnp.float32), "large": ((84, 84, 4), jnp.uint8)}


def make_rounds(arguments):
    lanes, unroll, batch = arguments.lanes, arguments.unroll, arguments.batch
    shape, dtype = OBSERVATIONS[arguments.observation]
    sizes = {
        "add_batch_size": lanes,
        "sample_batch_size": batch,
        "sample_sequence_length": arguments.length,
        "period": 1,
        "max_length_time_axis": arguments.items // lanes,
    }
    if arguments.prioritized:
        buffer = flashbax.make_prioritised_trajectory_buffer(
            **sizes, min_length_time_axis=arguments.length, priority_exponent=0.6, device="cpu"
        )
    else:
        buffer = flashbax.make_trajectory_buffer(**sizes, min_length_time_axis=arguments.length)

    def steps(number, leading):
        return {
            "observation": jnp.full((*leading, *shape), number, dtype),
            "action": jnp.full(leading, number, jnp.int32),
            "reward": jnp.full(leading, number, jnp.float32),
            "done": jnp.zeros(leading, bool),
        }

    def init():
        state = buffer.init(jax.tree.map(lambda leaf: leaf[0, 0], steps(0, (1, 1))))
        # All of the store is there to be drawn from.
        filled = {"current_index": jnp.int32(0), "is_full": jnp.bool_(True)}
        if arguments.prioritized:
            leaves = arguments.items
            tree = flashbax.buffers.sum_tree.set_batch_bincount(
                state.sum_tree_state, jnp.arange(leaves), jnp.ones(leaves)
            )
            filled["sum_tree_state"] = tree
        return state.replace(**filled), steps(0, (batch, arguments.length))

    def one(number, carry, key):
        state, _ = carry
        sample_key, priority_key = jax.random.split(jax.random.fold_in(key, number))
        state = buffer.add(state, steps(number, (lanes, unroll)))
        sample = buffer.sample(state, sample_key)
        if arguments.prioritized:
            priorities = jax.random.uniform(priority_key, (batch,)) + 0.1
            state = buffer.set_priorities(state, sample.indices, priorities)
        return state, sample.experience

    def run(carry, key):
        return jax.lax.fori_loop(0, arguments.rounds, lambda number, carry: one(number, carry, key), carry)

    return init, run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--observation", choices=OBSERVATIONS, default="small")
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--unroll", type=int, default=4)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--length", type=int, default=2)
    parser.add_argument("--prioritized", action="store_true")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    init, run = make_rounds(arguments)
    stages = measure(run, (jax.jit(init)(), jax.random.PRNGKey(0)), arguments.repeats, donated=0)[0]
    report({"peer": "flashbax", "env_steps": arguments.rounds, **stages})


if __name__ == "__main__":
    main()
