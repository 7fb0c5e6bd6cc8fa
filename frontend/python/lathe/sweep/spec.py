"""The sweep file: read, and every value checked before any job starts."""

import ast
import difflib
import json
import os
import pathlib
import subprocess
import sys

from lathe.sweep import backends, environment, models, product

SCHEMA = "experiments/schema/sweep.schema.json"
MAX_PROBLEMS = 20  # that are told at once
MAX_BYTES = 16 << 20
CATALOGUE_SECONDS = 300


class SpecError(Exception):
    """What is wrong with a sweep file: sentences, each with its place."""


def read(path):
    """The sweep as given, and with every default filled in; a SpecError tells all that is wrong."""
    path = pathlib.Path(path)
    given = load_json(path)
    schema = json.loads(models.tree_file(SCHEMA).read_text())
    problems = schema_problems(given, schema)
    if not problems:
        spec = fill(given, schema, path)
        problems = name_problems(spec)
    if problems:
        told = problems[:MAX_PROBLEMS]
        if len(problems) > len(told):
            told.append(f"and {len(problems) - len(told)} more")
        raise SpecError("\n".join(f"{path}: error: {problem}" for problem in told))
    return given, spec


def load_json(path):
    def no_twins(pairs):
        keys = [key for key, _ in pairs]
        twin = next((key for key in keys if keys.count(key) > 1), None)
        if twin is not None:
            raise SpecError(f"{path}: error: the key '{twin}' stands twice in one object")
        return dict(pairs)

    def no_constant(word):
        raise SpecError(f"{path}: error: {word} is no number of JSON")

    try:
        if path.stat().st_size > MAX_BYTES:
            raise SpecError(f"{path}: error: more than {MAX_BYTES >> 20} MiB is no sweep file")
        text = path.read_text(encoding="utf-8")
        return json.loads(text, object_pairs_hook=no_twins, parse_constant=no_constant)
    except OSError as error:
        raise SpecError(f"{path}: error: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: error: no UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"{path}:{error.lineno}:{error.colno}"
        raise SpecError(f"{place}: error: {error.msg[0].lower()}{error.msg[1:]}") from None
    except (RecursionError, ValueError) as error:  # nested too deep; a number too long
        raise SpecError(f"{path}: error: {error}") from None


def schema_problems(given, schema):
    try:
        import jsonschema
    except ImportError:
        raise SpecError("the package jsonschema is missing: pip install jsonschema") from None
    found = jsonschema.Draft202012Validator(schema).iter_errors(given)
    return [problem for error in sorted(found, key=lambda e: str(e.json_path))
            for problem in describe(error)]


def describe(error):
    """A violation of the schema as sentences of ours."""
    at, found = error.json_path, error.instance
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        return [
            f"at {at}: unknown key '{key}'; {nearest(key, known)}"
            for key in found
            if key not in known
        ]
    if error.validator == "enum":
        return [f"at {at}: found {word(found)}, {nearest(found, error.validator_value)}"]
    if error.validator == "type":
        kinds = error.validator_value
        kinds = " or ".join(kinds) if isinstance(kinds, list) else kinds
        return [f"at {at}: found {word(found)}, expected {kinds}"]
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in found]
        return [f"at {at}: '{missing[0]}' is missing"]
    limits = {
        "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than",
        "minItems": "a length of at least", "minLength": "a length of at least",
        "maxLength": "a length of at most", "pattern": "a text like",
        "minProperties": "as many keys as",
    }
    if error.validator in limits:
        limit = f"{limits[error.validator]} {error.validator_value}"
        return [f"at {at}: found {word(found)}, expected {limit}"]
    return [f"at {at}: {error.message}"]


def word(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(found, known):
    """"did you mean ...", or all that there are, when they are few."""
    words = [k if isinstance(k, str) else json.dumps(k) for k in known]
    close = difflib.get_close_matches(str(found), words, 1, 0.5)
    if close:
        return f"did you mean '{close[0]}'?"
    if len(words) <= 20:
        return "expected one of " + ", ".join(words)
    return f"none of {len(words)} known names is near"


def fill(given, schema, path):
    """The sweep with defaults, and its models as parts. Rules keep the words of the file."""
    properties = schema["properties"]
    spec = {"name": path.stem, "title": "", "about": "", "exclude": [], "include": [],
            "folder": str(path.absolute().parent), "modes": None, "options": None}
    for key, value in properties.items():
        if "default" in value:
            spec[key] = value["default"]
    for key in ("measure", "limits"):
        filled = properties[key]["properties"].items()
        spec[key] = {name: entry["default"] for name, entry in filled} | given.get(key, {})
    spec |= {key: value for key, value in given.items() if key not in ("measure", "limits")}
    spec.pop("$schema", None)
    return spec


def name_problems(spec):
    """What no schema sees: names of models, arguments and options, `against`, idle rules."""
    problems = against_problems(spec["against"])
    queries, names = [], {}
    for place, lists in product.products(spec):
        if product.size(lists) > product.MAX_COMBINATIONS:
            problems.append(f"at {place}: {product.size(lists)} combinations, expected at most "
                            f"{product.MAX_COMBINATIONS}")
        if place != "$" and lists["models"] is spec["models"]:
            continue
        for i, item in enumerate(lists["models"]):
            at = f"{place}.models[{i}]"
            try:
                name, model = product.model_of(item)
                problems += model_problems(model, at, spec["folder"])
                queries += model_queries(model, at)
            except models.ModelError as error:
                problems.append(f"at {at}: {error}")
                continue
            if names.setdefault(name, model) != model:
                problems.append(f"at {at}: the name '{name}' stands for another model, too")
    if problems:
        return problems
    return rule_problems(spec) + ask(queries + option_queries(spec))


def against_problems(against):
    problems = []
    for i, text in enumerate(against):
        at, (name, mode) = f"at $.against[{i}]", backends.split(text)
        if name not in backends.BACKENDS:
            problems.append(f"{at}: found {word(name)}, {nearest(name, backends.BACKENDS)}")
        elif mode is not None and not backends.BACKENDS[name].has_modes:
            problems.append(f"{at}: backend '{name}' has no modes")
        elif mode is not None and mode not in backends.MODES:
            problems.append(f"{at}: found {word(mode)}, {nearest(mode, backends.MODES)}")
    return problems


def rule_problems(spec):
    """Rules that take nothing out are misspelt, most likely; a sweep without jobs too."""
    own = [settings for settings, _ in product.combinations(spec, spec["against"])]
    problems = [
        f"at $.exclude[{i}]: no job is like {word(rule)}"
        for i, rule in enumerate(spec["exclude"])
        if not any(product.matches(settings, rule) for settings in own)
    ]
    if not problems and not any(product.expand(spec)):
        problems.append("at $.exclude: every job is taken out")
    return problems


def model_problems(model, at, folder):
    """Of a model's source, and of its file, which is read and not run."""
    source = model["source"]
    if source not in models.SOURCES:
        return [f"at {at}: found source {word(source)}, {nearest(source, models.SOURCES)}"]
    path = models.file_of(model, folder)
    if path is None:
        return []
    if not path.is_file():
        return [f"at {at}: {path} is no file"]
    if source == "pt2":
        return [f"at {at}: an archive takes no arguments"] if model["arguments"] else []
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [f"at {at}: {path} is no Python: {error}"]
    functions = {n.name: n.args for n in tree.body if isinstance(n, ast.FunctionDef)}
    name = model["name"] if source == "zoo" else model["function"]
    if name not in functions:
        return [f"at {at}: no function '{name}' in {path.name}; {nearest(name, functions)}"]
    taken = functions[name]
    if taken.kwarg:
        return []
    known = {a.arg for a in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)} - {"batch"}
    return [
        f"at {at}: '{name}' has no argument '{key}'; {nearest(key, sorted(known))}"
        for key in model["arguments"]
        if key not in known
    ]


def model_queries(model, at):
    """What to ask the packages of models: (query, names to find, where, what they are called)."""
    source = model["source"]
    if source not in ("torchvision", "timm", "transformers"):
        return []
    found = [((source, None), [model["name"]], at, f"{source} has no")]
    if source == "transformers":
        fields = ("config", model["name"])
        found.append((fields, list(model["arguments"]), at, f"{model['name']} has no"))
    return found


def option_queries(spec):
    """What to ask of the options that each backend will be given."""
    asked = []
    for place, settings, _ in product.expand(spec):
        if settings["options"]:
            lists = dict(product.products(spec))[place]
            where = f"{place}.options[{lists['options'].index(settings['options'])}]"
            backend = settings["backend"]
            query = (("options", backend), list(settings["options"]), where,
                     f"backend '{backend}' has no option")
            if query not in asked:
                asked.append(query)
    return asked


def ask(queries):
    """What is wrong of names that only their packages know, by a process of its own."""
    kinds = sorted({query for query, names, _, _ in queries if names}, key=str)
    if not kinds:
        return []
    command = [sys.executable, "-m", "lathe.sweep.catalogue", json.dumps(kinds)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CATALOGUE_SECONDS,
            stdin=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": environment.python_path()},
        )
        answers = dict(zip(kinds, json.loads(done.stdout.splitlines()[-1])))
    except (IndexError, ValueError, subprocess.TimeoutExpired) as error:
        return [f"at $.models: the packages of models cannot be asked: {error}"]
    problems = []
    for query, names, at, what in queries:
        known = answers.get(query)
        if isinstance(known, dict):
            problems.append(f"at {at}: {known['error']}")
        elif known is not None:
            problems += [f"at {at}: {what} '{name}'; {nearest(name, known)}"
                         for name in names if name not in known and known]
    return list(dict.fromkeys(problems))
