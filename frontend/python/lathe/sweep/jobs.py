"""The jobs of a sweep, each with a name that says what its figures depend on."""

from lathe.sweep import backends, environment, models, product


def expand(spec):
    """Every job once, in the order of the file; models outermost, so that neighbours compare."""
    found, identities = {}, {}
    for _, settings, model in product.expand(spec):
        name = settings["model"]
        if name not in identities:
            identities[name] = models.identity(model, spec["folder"])
        job = make(settings, model, identities[name], spec)
        found.setdefault(job["job"], job)
    return list(found.values())


def make(settings, model, identity, spec):
    """A job: what a worker needs. Its name is a hash of all that its figures depend on."""
    names = {settings["backend"], *(backends.split(name)[0] for name in settings["against"])}
    key = {
        "settings": settings,
        "model": identity,
        "measure": spec["measure"],
        "lathe": environment.build_id() if "lathe" in names else None,
    }
    source = () if settings["source"] in ("zoo", "file", "pt2") else (settings["source"],)
    packages = [*source, *(p for name in names for p in backends.BACKENDS[name].packages)]
    return {
        "job": environment.digest(key, 16),
        "settings": settings,
        "model": model,
        "folder": spec["folder"],
        "measure": spec["measure"],
        "limits": spec["limits"],
        "packages": sorted(packages),
    }
