"""disco.json: targets of DiscoRL's update rule (Oh et al. 2025), its memory after them, and the losses of an agent, by disco-torch.

The authors' package is on no registry, and their weights are no part of this tree: the rule's arrays have the names and the shapes of the
published file, and numbers that `numbers` makes, which a test makes again. disco-torch is a port of the authors' package to PyTorch. It
shifts the traces of Retrace by a step, which rlax, that the authors call, does not: the returns here are rlax's. All is computed in f64.
"""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import rlax
import torch
from disco_torch import update_rule, value_utils
from disco_torch.load_weights import load_disco103_weights
from disco_torch.types import UpdateRuleInputs

from golden import File
from named import add, f32

LIFE = "lstm/~/meta_lstm/~unroll"
DISCOUNT, LAMBDA, GREATEST = 0.997, 0.95, 300.0


def shapes(predictions):
    """Shapes of the published file by name, for so many predictions."""
    linear = lambda name, inputs, outputs: {f"{name}/w": (inputs, outputs), f"{name}/b": (outputs,)}
    conv = lambda name, inputs, outputs: {f"{name}/w": (1, inputs, outputs), f"{name}/b": (outputs,)}
    arrays = {}
    for part in ("lstm", LIFE):
        for mlp in ("mlp", "mlp_1"):
            arrays |= linear(f"{part}/{mlp}/~/linear_0", predictions, 16) | linear(f"{part}/{mlp}/~/linear_1", 16, 1)
        arrays |= conv(f"{part}/sequential/conv1_d", 18, 16) | conv(f"{part}/sequential/conv1_d_1", 32, 2)
    arrays |= linear("lstm/lstm/linear", 27 + 256, 1024) | linear("lstm/linear", 128, 256)
    arrays |= linear("lstm/linear_1", 256, 1) | linear("lstm/linear_2", 256, predictions) | linear("lstm/linear_3", 256, predictions)
    arrays |= conv("lstm/sequential_1/conv1_d", 516, 16) | linear("lstm/linear_4", 16, 1)
    return arrays | linear(f"{LIFE}/mlp_2/~/linear_0", 29, 16) | linear(f"{LIFE}/lstm/linear", 16 + 128, 512)


def numbers(name, shape):
    """Numbers that look random: a linear congruence of the position, begun with the sum of the name's bytes."""
    count = int(np.prod(shape))
    hashed = (np.arange(count, dtype=np.uint64) * 2654435761 + sum(name.encode()) * 40503) % 2**32
    # A second step, or neighbours would be alike.
    hashed = (hashed * 1664525 + 1013904223) % 2**32
    fan = shape[-2] if len(shape) > 1 else 16
    return f32((hashed / 2**32 - 0.5) * 3.0 / np.sqrt(fan)).reshape(shape)


def retrace(original):
    """`estimate_q_values` of the package with the returns of rlax."""

    def estimate(rewards, actions, env_discounts, rho, values, target_values, q_values, target_q_values, discount, lambda_):
        outs = original(rewards, actions, env_discounts, rho, values, target_values, q_values, target_q_values, discount, lambda_)
        trace = lambda_ * np.minimum(1.0, rho.numpy())
        taken = np.take_along_axis(target_q_values[:-1].numpy(), actions.numpy()[..., None], -1)[..., 0]
        lanes = []
        for lane in range(rewards.shape[1]):
            of = lambda x: jnp.asarray(np.asarray(x)[:, lane])
            discounts = of(env_discounts * discount)
            after = of(target_values)[1:]
            lanes.append(rlax.general_off_policy_returns_from_q_and_v(of(taken)[1:], after, of(rewards), discounts, of(trace)[1:]))
        outs.q_target = torch.tensor(np.stack(lanes, 1))
        outs.adv = outs.q_target - target_values[:-1]
        outs.q_td = outs.q_target - torch.tensor(np.take_along_axis(q_values[:-1].numpy(), actions.numpy()[..., None], -1)[..., 0])
        return outs

    return estimate


def new_rule(predictions, bins):
    rule = update_rule.DiscoUpdateRule(predictions, DISCOUNT, GREATEST, bins)
    with tempfile.NamedTemporaryFile(suffix=".npz") as weights:
        np.savez(weights, **{name: numbers(name, shape) for name, shape in shapes(predictions).items()})
        weights.flush()
        load_disco103_weights(rule, weights.name)
    return rule


def record(file, seed, predictions, steps, lanes, actions, bins):
    rng = np.random.default_rng(seed)
    draw = lambda *shape, scale=1.0: f32(np.round(rng.normal(size=shape) * scale, 2))

    def outputs():
        ahead = (steps + 1, lanes)
        return {
            "logits": draw(*ahead, actions),
            "y": draw(*ahead, predictions),
            "z": draw(*ahead, actions, predictions),
            "aux_pi": draw(*ahead, actions, actions),
            "q": draw(*ahead, actions, bins),
        }

    now, target, behaviour = outputs(), outputs(), draw(steps, lanes, actions)
    x = {
        "action": rng.integers(0, actions, (steps, lanes), np.int32),
        "reward": draw(steps, lanes),
        "terminated": rng.uniform(size=(steps, lanes)) < 0.25,
        "behaviour": behaviour,
        "memory.h": draw(128, scale=0.3),
        "memory.c": draw(128, scale=0.3),
        "memory.mean": f32(0.02),
        "memory.square": f32(0.3),
        "memory.begun": f32(0.9),
    }
    rule = new_rule(predictions, bins)
    rule.double()
    wide = lambda value: torch.tensor(np.float64(value))
    tensors = lambda tree: {name: wide(value) for name, value in tree.items()}
    rollout = UpdateRuleInputs(
        observations=torch.zeros(steps + 1, lanes, 1),
        actions=torch.tensor(np.concatenate([x["action"], x["action"][:1]])),
        rewards=wide(x["reward"]),
        is_terminal=wide(x["terminated"]),
        agent_out=tensors(now),
        # The package reads a further step of it, and drops it.
        behaviour_agent_out={"logits": wide(np.concatenate([behaviour, behaviour[:1]]))},
    )
    ema = update_rule.EmaState(*(wide(x[f"memory.{name}"]) for name in ("mean", "square", "begun")))
    memory = {"rnn_state": (wide(x["memory.h"]), wide(x["memory.c"])), "adv_ema_state": ema, "td_ema_state": ema}
    with torch.no_grad():
        to, after = rule.unroll_meta_net(rollout, {}, memory | {"target_params": {}}, lambda *_: (tensors(target), None), {"value_fn_td_lambda": LAMBDA})
        costs = {"pi_cost": 0.0, "y_cost": 0.0, "z_cost": 0.0, "aux_policy_cost": 0.0}
        loss = lambda name: rule.agent_loss(rollout, to, costs | {name: 1.0})[0].numpy()
        losses = {name: loss(f"{key}_cost") for name, key in [("policy", "pi"), ("y", "y"), ("z", "z"), ("next_policy", "aux_policy")]}
        losses["value"] = rule.agent_loss_no_meta(rollout, to, {"value_cost": 1.0})[0].numpy()
    ends = lambda prefix, tree: {f"{prefix}.{k}": v[:-1] for k, v in tree.items()} | {f"{prefix}_after.{k}": v[1:] for k, v in tree.items()}
    h, c = after["rnn_state"]
    moments = after["adv_ema_state"]
    results = {
        "q_target": to["q_target"],
        "advantage": to["adv"],
        "policy": to["pi"],
        "y": to["y"],
        "z": to["z"],
        "memory.h": h,
        "memory.c": c,
        "memory.mean": moments.moment1,
        "memory.square": moments.moment2,
        **{f"loss.{name}": value for name, value in losses.items()},
    }
    attrs = {"predictions": predictions, "discount": DISCOUNT, "lambda": LAMBDA}
    add(file, "disco_targets", attrs, x | ends("now", now) | ends("target", target), {k: f32(v) for k, v in results.items()})


if __name__ == "__main__":
    # In f64: of values of up to 300 there is little left of f32 behind the point.
    torch.set_default_dtype(torch.float64)
    jax.config.update("jax_enable_x64", True)
    value_utils.estimate_q_values = retrace(value_utils.estimate_q_values)
    file = File("disco", "targets of DiscoRL's update rule, with arrays of the published shapes", ["disco-torch", "torch", "rlax", "jax", "numpy"])
    # The published sizes, and fewer predictions.
    for seed, sizes in enumerate([(600, 2, 1, 2, 601), (12, 6, 3, 4, 21), (12, 9, 2, 3, 21)]):
        record(file, seed, *sizes)
    file.write()
