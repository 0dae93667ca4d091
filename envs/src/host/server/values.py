# Values of spaces, and checks of values. This is a part of a server's program, behind `server.py`.


class WrongValue(Exception):
    """A reward or an observation that an environment must not have; `row` is the environment's number in the batch."""

    def __init__(self, row, problem):
        super().__init__(problem)
        self.row = int(row)


def named(path, element, space):
    """The name of an element of an observation, or of a leaf of it by its key path."""
    leaf = f"`{path}` of the observation" if path else "the observation"
    return f"element {element} of {leaf}" if np.prod(space.shape) > 1 else leaf


def check_rewards(rewards, given):
    """Checks that rewards, f32 made of those `given`, are finite."""
    finite = np.isfinite(rewards)
    if finite.all():
        return
    row = np.argmin(finite)
    if np.isfinite(float(given[row])):
        raise WrongValue(row, f"the reward is {given[row]}, which f32 does not hold")
    # Gymnasium makes NaN of None.
    nan = " (NaN, or None)" if np.isnan(rewards[row]) else ""
    raise WrongValue(row, f"the reward is {given[row]}{nan} and must be a finite number")


def check_numbers(space, numbers, given, rows):
    """Checks observations f32 that are not all finite: none is NaN, and none infinite unless its bound is. `given` has the numbers
    before they became f32."""
    leaves = [(path, leaf, width_of(leaf, flat=True)) for path, _, leaf in leaves_of(space)]

    def bound(side):
        each = [
            np.ravel(getattr(leaf, side)) if type(leaf).__name__ == "Box" else np.zeros(width) for _, leaf, width in leaves
        ]
        return np.concatenate(each)

    given = given.reshape(len(given), -1)
    numbers = numbers.reshape(given.shape)
    wrong = np.isnan(numbers)
    wrong |= (numbers == np.inf) & ((bound("high") < np.inf) | np.isfinite(given))
    wrong |= (numbers == -np.inf) & ((bound("low") > -np.inf) | np.isfinite(given))
    for row, element in np.argwhere(wrong)[:1]:
        value, at = given[row, element], element
        for path, leaf, width in leaves:
            if at < width:
                break
            at -= width
        problem = "which f32 does not hold" if np.isfinite(value) else f"outside of {leaf}"
        raise WrongValue(row if rows is None else rows[row], f"{named(path, at, leaf)} is {value}, {problem}")


class Flat:
    """Observations of several leaves, or of one that is no array of numbers, as one vector: the leaves one behind the other, as
    Gymnasium's `flatten` puts them. Discrete values are one-hot, and images are scaled to [0, 1], which Gymnasium does not."""

    def __init__(self, space):
        self.leaves = list(leaves_of(space))

    def __call__(self, observations, count, first=0):
        """Observations of `count` environments from row `first` on, each leaf with a leading axis."""
        picked = [(path, leaf, functools.reduce(operator.getitem, keys, observations)) for path, keys, leaf in self.leaves]
        return np.concatenate([flat_leaf(*leaf, count, first) for leaf in picked], 1)

    def one(self, observation, row):
        """The observation of the environment in a row."""
        return self(observation, 1, row)[0]


def actions_of(space, values):
    """Actions of all environments as the space has them, of the numbers in the memory, `[count, ..]`."""
    kind = type(space).__name__
    if kind in ("Dict", "Tuple"):
        begin, parts = 0, {}
        for key, part in space.spaces.items() if kind == "Dict" else enumerate(space.spaces):
            end = begin + width_of(part)
            parts[key], begin = actions_of(part, values[:, begin:end]), end
        return parts if kind == "Dict" else tuple(parts.values())
    values = values.reshape(len(values), *space.shape)
    if kind == "Box":
        return np.clip(values, space.low, space.high).astype(space.dtype)
    # EnvPool's discrete actions say int32 and are taken as int64.
    return (values + getattr(space, "start", 0)).astype(np.int64 if kind == "Discrete" else space.dtype)


def width_of(space, flat=False):
    """Number of elements of all parts together; if `flat`, a choice has an element for each of its values."""
    counts = {"Discrete": "n", "MultiDiscrete": "nvec"} if flat else {}

    def width(part):
        count = counts.get(type(part).__name__)
        return int(np.sum(getattr(part, count)) if count else np.prod(part.shape))

    return sum(width(part) for _, _, part in leaves_of(space))


def leaves_of(space, path="", keys=()):
    """Key path, keys and space of each leaf."""
    kind = type(space).__name__
    if kind in ("Dict", "Tuple"):
        for key, leaf in space.spaces.items() if kind == "Dict" else enumerate(space.spaces):
            yield from leaves_of(leaf, f"{path}.{key}" if path else str(key), (*keys, key))
    else:
        yield path, keys, space


def flat_leaf(path, space, values, count, first):
    """A leaf of `count` observations as f32 `[count, width]`."""
    values = np.asarray(values)
    kind = type(space).__name__
    if kind not in ("Discrete", "MultiDiscrete"):
        scale = 255 if space.dtype == np.uint8 and len(space.shape) == 3 else 1
        return values.reshape(count, -1).astype(np.float32) / np.float32(scale)
    values = values.reshape(count, -1)
    chosen = values - getattr(space, "start", 0)
    counts = np.ravel(space.n if kind == "Discrete" else space.nvec)
    hot = np.concatenate([np.arange(n) == chosen[:, i : i + 1] for i, n in enumerate(counts)], 1)
    if np.count_nonzero(hot) != chosen.size:
        row, element = np.argwhere((chosen < 0) | (chosen >= counts) | (chosen != np.floor(chosen)) | (chosen != chosen))[0]
        raise WrongValue(first + row, f"{named(path, element, space)} is {values[row, element]}, outside of {space}")
    return hot.astype(np.float32)


def interleave(words, stacks):
    """Four frames of a byte as words: fifty times as fast as moving the axis. A few stacks at a time stay in the cache."""
    shifted = np.empty((8, *words.shape[1:]), "<u4")
    for first in range(0, len(words), len(shifted)):
        into, some = words[first : first + len(shifted)], stacks[first : first + len(shifted)]
        shift = shifted[: len(into)]
        np.copyto(into, some[:, 0])
        for frame in (1, 2, 3):
            np.copyto(shift, some[:, frame])
            np.left_shift(shift, 8 * frame, out=shift)
            np.bitwise_or(into, shift, out=into)
