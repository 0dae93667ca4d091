# Counts of the windows that flashbax's prioritized trajectory buffer draws. Reads its order as JSON, and prints a list of
# counts for each size of batch, by place in the ring and lane.
import json
import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import flashbax
import jax
import jax.numpy as jnp
import numpy as np

order = json.load(sys.stdin)
lanes, ring, unroll = order["lanes"], order["ring"], order["unroll"]
# flashbax counts windows lane by lane, and the order place by place.
priorities = np.array(order["priorities"]).reshape(ring, lanes).T.flatten()
whole = np.flatnonzero(priorities)
counts = []
for batch in order["batches"]:
    buffer = flashbax.make_prioritised_trajectory_buffer(
        add_batch_size=lanes,
        sample_batch_size=batch,
        sample_sequence_length=order["length"],
        period=1,
        max_length_time_axis=ring,
        min_length_time_axis=order["length"],
        priority_exponent=order["exponent"],
        device="cpu",
    )
    state = buffer.init(jnp.int32(0))
    steps = jnp.zeros((lanes, unroll), jnp.int32)
    state = jax.lax.fori_loop(0, order["rollouts"], lambda _, state: buffer.add(state, steps), state)
    state = buffer.set_priorities(state, jnp.array(whole), jnp.array(priorities[whole], jnp.float32))

    @jax.jit
    def draw(key):
        keys = jax.random.split(key, order["draws"] // 1000 // batch)
        return jax.vmap(lambda key: buffer.sample(state, key).indices)(keys)

    drawn = [np.asarray(draw(key)).flatten() for key in jax.random.split(jax.random.PRNGKey(1), 1000)]
    found = np.bincount(np.concatenate(drawn), minlength=lanes * ring)
    # The last places of its tree belong to no window.
    found, outside = found[: lanes * ring], found[lanes * ring :]
    counts.append(found.reshape(lanes, ring).T.flatten().tolist() + [int(outside.sum())])
print(json.dumps(counts))
