"""Random expressions, and what NumPy computes for them, to the bit.

A number that is written in the text is a Python int or float until it meets an array (NEP 50).
NumPy 1 does not know that rule, so each such number becomes an array of its type first.
"""

import math
import re

import numpy as np

FLOATS = ("f2", "f4", "f8")
SIGNED = ("i1", "i2", "i4", "i8")
UNSIGNED = ("u1", "u2", "u4", "u8")
INTEGERS = SIGNED + UNSIGNED
DTYPES = (*FLOATS, *INTEGERS, "?")
LENGTH = 48
SHAPES = ((48,), (6, 8), (3, 16), (2, 3, 8), (4, 2, 6), (1, 48), (2, 2, 3, 4))

NAMES = {"f2": "f16", "f4": "f32", "f8": "f64", "?": "bool"} | {
    f"{kind}{size}": f"{kind}{8 * size}" for kind in "iu" for size in (1, 2, 4, 8)
}
COMPARISONS = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class Refused(Exception):
    """The library refuses such an expression, or does not say what it computes."""


def code(dtype):
    return np.dtype(dtype).str[1:].replace("b1", "?")


def is_weak(value):
    return not isinstance(value, np.ndarray)


def own(value):
    """The type of a value by itself."""
    if not is_weak(value):
        return value.dtype
    if isinstance(value, float):
        return np.dtype("f8")
    return np.dtype("u8" if value > 2**63 - 1 else "i8")


def common(*values):
    arrays = [value.dtype for value in values if not is_weak(value)]
    weak = [value for value in values if is_weak(value)]
    if not arrays:
        return np.result_type(*(own(value) for value in values))
    dtype = np.result_type(*arrays)
    if any(isinstance(value, float) for value in weak) and dtype.kind != "f":
        return np.dtype("f8")
    return np.dtype("i8") if weak and dtype.kind == "b" else dtype


def convert(value, dtype):
    dtype = np.dtype(dtype)
    if not is_weak(value):
        if value.dtype.kind == "f" and dtype.kind in "iu":
            raise Refused
        if value.dtype.kind in "iu" and dtype == np.dtype("f2"):
            return value.astype("f4").astype("f2")
        return value.astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if isinstance(value, float) or not limits.min <= value <= limits.max:
            raise Refused
    if dtype.kind == "f" and isinstance(value, int):
        value = float(value)
    return np.full(LENGTH, value, dtype)


def together(*values):
    dtype = common(*values)
    return [convert(value, dtype) for value in values]


def weak_int(value):
    if not -(2**63) <= value < 2**64:
        raise Refused
    return value


def both_weak(a, b):
    return is_weak(a) and is_weak(b)


def truth(value):
    return convert(value, "?")


# -- operators ------------------------------------------------------------------------------------


def fold(op, a, b):
    """What Python computes of two numbers."""
    integers = isinstance(a, int) and isinstance(b, int)
    if op in ("//", "%", "/") and b == 0:
        raise Refused
    if op in COMPARISONS:
        kind = object if integers else float
        return np.full(LENGTH, bool(COMPARISONS[op](np.array(a, kind), np.array(b, kind))))
    if op in ("&", "|", "^", "<<", ">>", "//", "%") and not integers:
        raise Refused
    if op in ("<<", ">>") and not 0 <= b <= 64:
        raise Refused
    if op == "/":
        return float(np.float64(a) / np.float64(b))
    if not integers:
        a, b = np.float64(a), np.float64(b)
    result = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "&": lambda: a & b,
        "|": lambda: a | b,
        "^": lambda: a ^ b,
        "<<": lambda: a << b,
        ">>": lambda: a >> b,
        "//": lambda: a // b,
        "%": lambda: a % b,
    }[op]()
    return weak_int(result) if integers else float(result)


def compare(op, a, b):
    kinds = {own(a).str[1:], own(b).str[1:]}
    whole = all(isinstance(value, int) or (not is_weak(value) and value.dtype.kind in "iu")
                for value in (a, b))
    if whole and (kinds == {"i8", "u8"} or is_weak(a) or is_weak(b)):
        # Exact, also with a number that the type does not hold.
        a = a.astype(object) if not is_weak(a) else np.full(LENGTH, a, object)
        b = b.astype(object) if not is_weak(b) else np.full(LENGTH, b, object)
        return COMPARISONS[op](a, b).astype("?")
    return COMPARISONS[op](*together(a, b))


def binary(op, a, b):
    if op in ("&&", "||"):
        if both_weak(a, b):
            result = (a != 0 and b != 0) if op == "&&" else (a != 0 or b != 0)
            return np.full(LENGTH, result)
        return (np.logical_and if op == "&&" else np.logical_or)(truth(a), truth(b))
    if both_weak(a, b):
        return fold(op, a, b)
    if op in COMPARISONS:
        return compare(op, a, b)
    dtype = common(a, b)
    if op == "/" and dtype.kind != "f":
        dtype = np.dtype("f8")
    if op in ("//", "%", "<<", ">>", "&", "|", "^") and dtype.kind == "f":
        raise Refused
    if op in ("//", "%", "<<", ">>") and dtype.kind == "b":
        dtype = np.dtype("i1")
    x, y = convert(a, dtype), convert(b, dtype)
    if dtype.kind == "b" and op == "-":
        raise Refused
    return {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "/": np.divide,
        "//": np.floor_divide,
        "%": np.remainder,
        "&": np.bitwise_and,
        "|": np.bitwise_or,
        "^": np.bitwise_xor,
        "<<": np.left_shift,
        ">>": np.right_shift,
    }[op](x, y)


def unary(op, a):
    if op == "!":
        return np.full(LENGTH, a == 0) if is_weak(a) else np.logical_not(a)
    if is_weak(a):
        if op == "~":
            if isinstance(a, float):
                raise Refused
            return weak_int(~a)
        return a if op == "+" else weak_int(-a) if isinstance(a, int) else -a
    if op == "~":
        if a.dtype.kind == "f":
            raise Refused
        return np.invert(a)
    if a.dtype.kind == "b":
        raise Refused
    return np.negative(a) if op == "-" else a


# -- functions ------------------------------------------------------------------------------------


def choose(condition, a, b):
    c = truth(condition)
    x, y = together(a, b)
    return np.where(c, x, y)


def least(a, b, smaller=True):
    if both_weak(a, b):
        x, y = (a, b) if isinstance(a, int) and isinstance(b, int) else (float(a), float(b))
        first = x != x or (x <= y if smaller else x >= y)
        return a if first else b
    x, y = together(a, b)
    if x.dtype.kind == "b":
        return x & y if smaller else x | y
    return np.where((x <= y if smaller else x >= y) | (x != x), x, y)


def most(a, b):
    return least(a, b, smaller=False)


def clamp(x, low, high):
    if not all(is_weak(value) for value in (x, low, high)):
        x, low, high = together(x, low, high)
    return least(most(x, low), high)


def absolute(a):
    if is_weak(a):
        return weak_int(abs(a)) if isinstance(a, int) else abs(a)
    return a if a.dtype.kind == "b" else np.abs(a)


def sign(a):
    if is_weak(a):
        if isinstance(a, int):
            return (a > 0) - (a < 0)
        return math.copysign(1, a) if a == a and a else a
    if a.dtype.kind == "b":
        raise Refused
    return np.sign(a)


def rounding(function):
    def apply(a):
        if is_weak(a):
            return a if isinstance(a, int) else float(function(a))
        return function(a) if a.dtype.kind == "f" else a

    return apply


def asks(function):
    def apply(a):
        a = convert(a, own(a))
        return function(a) if a.dtype.kind == "f" else np.zeros(LENGTH, "?")

    return apply


def floats(*values):
    """The values in the float type that a function of them has."""
    if all(is_weak(value) for value in values):
        dtype = np.dtype("f8")
    else:
        dtype = common(*values)
    if dtype.kind != "f":
        dtype = np.dtype({1: "f2", 2: "f4"}.get(dtype.itemsize, "f8"))
    return [convert(value, dtype) for value in values]


def root(a):
    if is_weak(a):
        if a < 0:
            raise Refused
        return math.sqrt(a)
    (x,) = floats(a)
    return np.sqrt(x)


def fract(a):
    (x,) = floats(a)
    return x - np.floor(x)


def step(edge, a):
    edge, x = floats(edge, a)
    return np.where(x < edge, x.dtype.type(0), x.dtype.type(1))


def mod(a, b):
    x, y = floats(a, b)
    return x - y * np.floor(x / y)


def mix(a, b, t):
    if not is_weak(t) and t.dtype.kind == "b":
        return choose(t, b, a)
    x, y, t = floats(a, b, t)
    return x * (x.dtype.type(1) - t) + y * t


def power(a, k):
    if is_weak(a):
        try:
            return math.pow(a, k)
        except OverflowError:
            raise Refused from None
    a = convert(a, "i8") if a.dtype.kind == "b" else a
    result = a if k else convert(1, a.dtype)
    for _ in range(k - 1):
        result = result * a
    return result


def cast(dtype):
    def apply(a):
        if is_weak(a) and np.dtype(dtype).kind in "iu" and isinstance(a, float):
            if not abs(a) < 2**63:
                raise Refused
            a = int(a)
        return convert(a, dtype)

    return apply


FUNCTIONS = {
    "abs": (absolute, 1),
    "sign": (sign, 1),
    "floor": (rounding(np.floor), 1),
    "ceil": (rounding(np.ceil), 1),
    "trunc": (rounding(np.trunc), 1),
    "round": (rounding(np.rint), 1),
    "isnan": (asks(np.isnan), 1),
    "isinf": (asks(np.isinf), 1),
    "sqrt": (root, 1),
    "fract": (fract, 1),
    "step": (step, 2),
    "mod": (mod, 2),
    "min": (least, 2),
    "max": (most, 2),
    "clamp": (clamp, 3),
    "mix": (mix, 3),
} | {NAMES[dtype]: (cast(dtype), 1) for dtype in DTYPES}
BINARY = [*COMPARISONS, "+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "&&", "||"]


# -- the generator --------------------------------------------------------------------------------


def numbers(random, dtype):
    """Elements of a type: its edges first, in any order."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, LENGTH).astype("?")
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        edges = [0.0, -0.0, 1, -1, 0.5, 1.5, -2.5, 3, np.inf, -np.inf, np.nan, limits.max,
                 limits.tiny, limits.tiny / 4, 1 + limits.eps, -7]
        rest = random.standard_normal(LENGTH - len(edges)) * 10.0 ** random.integers(
            -3, 4, LENGTH - len(edges)
        )
    else:
        limits = np.iinfo(dtype)
        edges = [0, 1, 2, 3, 7, 10, 11, 100, limits.max, limits.max - 1, limits.max // 3,
                 limits.min, limits.min + 1]
        edges += [-1, -2, -11] if dtype.kind == "i" else [limits.max // 2 + 1, 64, 31]
        rest = random.integers(limits.min, limits.max, LENGTH - len(edges), dtype, endpoint=True)
        rest = np.where(random.random(len(rest)) < 0.5, rest, rest % 40)
    elements = np.concatenate([np.array(edges, dtype), rest.astype(dtype)])
    random.shuffle(elements)
    return elements


def literal(random):
    if random.random() < 0.6:
        value = int(random.choice([0, 0, 1, 2, 3, 7, 10, 11, 100, 255, 300, 40000, 2**31, 2**40]))
        return str(value), value
    value = float(random.choice([0.0, 0.0, 1.0, 0.5, 2.0, 3.25, 1e10, 1e-3, 1e300, np.inf, np.nan]))
    return repr(value), value


def leaf(random, inputs):
    if inputs and random.random() < 0.7:
        name = str(random.choice(list(inputs)))
        return name, inputs[name]
    return literal(random)


def grow(random, inputs, depth):
    if depth == 0 or random.random() < 0.1:
        return leaf(random, inputs)
    kind = random.random()
    if kind < 0.5:
        op = str(random.choice(BINARY))
        (left, a), (right, b) = (grow(random, inputs, depth - 1) for _ in range(2))
        if random.random() < 0.1:
            right, b = left, a
        return f"({left} {op} {right})", binary(op, a, b)
    if kind < 0.6:
        op = str(random.choice(["-", "!", "~", "+"]))
        text, a = grow(random, inputs, depth - 1)
        return f"({op}{text})", unary(op, a)
    if kind < 0.68:
        (c, p), (left, a), (right, b) = (grow(random, inputs, depth - 1) for _ in range(3))
        return f"({c} ? {left} : {right})", choose(p, a, b)
    if kind < 0.72:
        text, a = grow(random, inputs, depth - 1)
        k = int(random.integers(0, 5))
        return f"pow({text}, {k})", power(a, k)
    name = str(random.choice(list(FUNCTIONS)))
    function, count = FUNCTIONS[name]
    arguments = [grow(random, inputs, depth - 1) for _ in range(count)]
    text = ", ".join(text for text, _ in arguments)
    return f"{name}({text})", function(*(value for _, value in arguments))


def some(random, elements, shape):
    """An array that is stretched to |shape|, and what comes of it; or one element as a number."""
    kind = random.random()
    if kind < 0.1:
        return elements[0], np.repeat(elements[:1], LENGTH)
    stretched = random.random(len(shape)) < (0.5 if kind < 0.6 else 0)
    own = tuple(1 if s else size for s, size in zip(stretched, shape))
    while own and own[0] == 1 and random.random() < 0.5:
        own = own[1:]
    array = elements[: math.prod(own)].reshape(own)
    return array if own else array[()], np.broadcast_to(array, shape).reshape(-1)


def expression(random, depth=4):
    """A text, what to give for its names, and the result."""
    while True:
        inputs, given = {}, {}
        shape = SHAPES[int(random.integers(len(SHAPES)))]
        for name in ("x", "y", "w"):
            elements = numbers(random, str(random.choice(DTYPES)))
            given[name], inputs[name] = some(random, elements, shape)
        try:
            with np.errstate(all="ignore"):
                text, result = grow(random, inputs, depth)
                result = convert(result, own(result))
        except Refused:
            continue
        used = set(re.findall(r"\b[xyw]\b", text))
        given = {name: value for name, value in given.items() if name in used}
        joined = np.broadcast_shapes(*(np.shape(value) for value in given.values()))
        steps = tuple(slice(0, size) for size in (1,) * (len(shape) - len(joined)) + joined)
        return text, given, result.reshape(shape)[steps].reshape(joined)


EXACT = ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax")


def reduction(random, depth=2):
    """A text that reduces one, what to give, the result, and how far from it a float may be."""
    while True:
        text, given, operand = expression(random, depth)
        name = str(random.choice([*EXACT, "mean"]))
        axes = [None, *range(-operand.ndim, operand.ndim)]
        if operand.ndim > 1 and not name.startswith("arg"):
            axes += [(0, -1), tuple(range(operand.ndim))]
        axis = axes[int(random.integers(len(axes)))]
        keepdims = bool(random.random() < 0.5)
        real = operand.dtype.kind == "f"
        if name == "prod" and real:
            continue
        wide = operand.astype("f4") if operand.dtype == "f2" else operand
        with np.errstate(all="ignore"):
            result = getattr(np, name)(wide, axis=axis, keepdims=keepdims)
            sums = np.sum(np.abs(wide.astype("f8")), axis=axis, keepdims=keepdims)
            limit = np.finfo(wide.dtype).max / 2 if real else np.inf
            # A sum that overflows does so in some orders only.
            if name in ("sum", "mean") and not (sums < limit).all():
                continue
            result = np.asarray(result.astype("f2") if wide is not operand and name in
                                ("sum", "mean", "min", "max") else result)
        slack = 0
        if name in ("sum", "mean") and result.dtype.kind == "f":
            elements = max(operand.size // max(result.size, 1), 1) if name == "mean" else 1
            slack = 4 * np.finfo(result.dtype).eps * sums / elements + np.finfo(result.dtype).tiny
        dims = ", keepdims=true" if keepdims else ""
        text = f"{name}({text}{'' if axis is None else f', axis={axis}'}{dims})"
        if name in ("min", "max") and keepdims:  # and something before and behind it
            text, result, slack = f"{text} == {text}", result == result, 0
        return text, given, result, slack


def near(a, b, slack):
    """Equal, zeros of any sign and NaNs of any bits, or within the slack."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype("f8") - b.astype("f8"))
    return bool(((a == b) | (a != a) & (b != b) | (apart <= slack)).all())


def same(a, b):
    """To the bit, but any NaN is a NaN."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    bits = f"u{a.itemsize}"
    return bool(((a != a) & (b != b) | (a.view(bits) == b.view(bits))).all())
