"""Numbers as a person reads them, always with a unit; what is missing is a dash, never a zero."""

MISSING = "–"


def _digits(value):
    return 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2


def plural(count, word):
    """`1 model`, `1,234 models`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def milliseconds(value):
    """A time given in milliseconds, in the unit that suits it."""
    if value is None:
        return MISSING
    for limit, factor, unit in ((0.1, 1e3, "µs"), (1e3, 1, "ms"), (6e4, 1e-3, "s")):
        if value < limit:
            return f"{value * factor:.{_digits(value * factor)}f} {unit}"
    minutes, seconds = divmod(round(value / 1e3), 60)
    return f"{minutes} min {seconds} s"


def byte_count(value):
    if value is None:
        return MISSING
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.{0 if unit == 'B' else _digits(value)}f} {unit}"
        value /= 1000
    raise AssertionError("unreachable: the last unit takes all")


def times(value):
    """A ratio: 1.52x."""
    if value is None:
        return MISSING
    return f"{value:.3f}x" if value < 0.1 else f"{value:.0f}x" if value >= 100 else f"{value:.2f}x"


def interval(estimate):
    """`1.41 to 1.60`, or why there is none."""
    if estimate is None:
        return MISSING
    if estimate.low is None:
        return estimate.why_no_interval
    return f"{times(estimate.low)[:-1]} to {times(estimate.high)[:-1]}"


def percent(share):
    return MISSING if share is None else f"{100 * share:.{0 if share in (0, 1) else 1}f} %"


def error(value):
    return MISSING if value is None else f"{value:.1e}"


def share(value):
    """A part of a limit: 0.031, or 3.4 beyond it."""
    return MISSING if value is None else f"{value:.2g}"
