"""The product of a sweep's lists: which settings there are, and what is taken out."""

import fnmatch
import itertools
import math

from lathe.sweep import backends, models

MAX_COMBINATIONS = 100_000  # of one product

# The file's word for each setting but the variant, which is a mode or options.
SETTINGS = {
    "model": "models", "target": "targets", "backend": "backends", "dynamic": "dynamic",
    "fullgraph": "fullgraph", "batch": "batch", "dtype": "dtypes", "threads": "threads",
}


def model_of(item):
    """(name in tables, parts) of an item of `models`; a ModelError when its text means nothing."""
    if isinstance(item, str):
        return item, models.split(item)
    parts = models.split(item["model"])
    parts["arguments"] = parts["arguments"] | item.get("arguments", {})
    return item.get("name", item["model"]), parts


def products(spec):
    """(place in the file, lists of a product): the sweep's own, and each of `include`."""
    yield "$", spec
    for i, rule in enumerate(spec["include"]):
        own = dict(spec)
        if "modes" in rule or "options" in rule:
            own |= {"modes": None, "options": None}
        yield f"$.include[{i}]", own | rule


def size(lists):
    """How many combinations a product has, before anything is left out."""
    variants = len(lists["modes"] or []) + len(lists["options"] or [])
    return math.prod(len(lists[word]) for word in SETTINGS.values()) * max(1, variants)


def expand(spec):
    """(place of the product in the file, settings, parts of the model) of every job."""
    for place, lists in products(spec):
        for settings, model in combinations(lists, spec["against"]):
            if place != "$" or not any(matches(settings, rule) for rule in spec["exclude"]):
                yield place, settings, model


def combinations(lists, against):
    """(settings, parts of the model) of a product; settings that do nothing are left out."""
    variants = [{"mode": mode, "options": {}} for mode in lists["modes"] or []]
    variants += [{"mode": None, "options": options} for options in lists["options"] or []]
    axes = [lists[word] for word in SETTINGS.values()]
    for values in itertools.product(*axes, variants or [{"mode": None, "options": {}}]):
        settings = dict(zip(SETTINGS, values[:-1])) | values[-1]
        name, model = model_of(settings["model"])
        settings |= {"model": name, "source": model["source"]}
        simplify(settings)
        settings["against"] = [b for b in against if b != label(settings)]
        yield settings, model


def simplify(settings):
    """Gives settings that a backend or model does not know their only meaning."""
    row = backends.BACKENDS[settings["backend"]]
    if not row.has_modes:
        settings |= {"mode": None, "options": {}}
    if row.kind != "dynamo":
        settings |= {"dynamic": None, "fullgraph": False}
    if settings["source"] == "pt2":
        settings["batch"] = 1  # its own example inputs, of whatever size


def label(settings):
    """What `against` would call a candidate, or None where it has no such name."""
    if settings["options"] or settings["dynamic"] is not None or settings["fullgraph"]:
        return None
    mode = settings["mode"]
    return settings["backend"] + (f":{mode}" if mode not in (None, "default") else "")


def matches(settings, rule):
    """Whether a job has one of the values of every list of a rule."""
    words = SETTINGS | {"mode": "modes", "options": "options"}
    return all(
        any(same(settings[key], value) for value in rule[word])
        for key, word in words.items()
        if word in rule
    )


def same(found, wanted):
    if isinstance(found, str) and isinstance(wanted, str):
        return fnmatch.fnmatchcase(found, wanted)
    if isinstance(found, dict) and isinstance(wanted, dict):
        return all(key in found and same(found[key], value) for key, value in wanted.items())
    return found == wanted and isinstance(found, bool) == isinstance(wanted, bool)


def title(settings):
    """A job in one line: what tells it from its neighbours."""
    words = [settings["model"], settings["backend"]]
    if settings["options"]:
        words.append(" ".join(f"{key}={value}" for key, value in settings["options"].items()))
    elif settings["mode"]:
        words.append(settings["mode"])
    if settings["dynamic"] is not None:
        words.append("dynamic" if settings["dynamic"] else "static")
    if settings["fullgraph"]:
        words.append("fullgraph")
    if settings["batch"] != 1:
        words.append(f"batch {settings['batch']}")
    if settings["dtype"] != "float32":
        words.append(settings["dtype"])
    if settings["target"] != "cpu":
        words.append(settings["target"])
    if settings["threads"] != 1:
        words.append(f"{settings['threads']} threads")
    return " / ".join(words)
