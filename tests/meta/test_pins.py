"""Every installed package is pinned, and every dependency is used in the one place that docs/architecture.md names."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions

from tests.meta.sources import ROOT, imports, sources

# What a CUDA build of torch brings is pinned by that build; pip comes with the interpreter.
NOT_PINNED = re.compile(r"pip|rankdrill|triton|nvidia-.*|cuda-.*")

# What a dependency brings along and documents as the way to use it.
COMES_WITH = {"markupsafe": "jinja2"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "ci/constraints.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonical(name): version for name, version in pairs}


def test_every_installed_package_is_at_its_pin() -> None:
    pinned = pins()
    wrong = sorted(
        f"{name} {version}: {'pinned at ' + pinned[name] if name in pinned else 'not pinned'}"
        for name, version in ((canonical(found.name), found.version.split("+")[0]) for found in distributions())
        if not NOT_PINNED.fullmatch(name) and pinned.get(name) != version
    )
    assert not wrong, "\n".join(wrong) + "\nchange ci/constraints.txt or run `bash ci/setup dev`"


def test_no_pin_carries_a_local_suffix() -> None:
    assert not [f"{name}=={version}" for name, version in pins().items() if "+" in version]


def documented_users() -> dict[str, tuple[str, ...]]:
    """Return the dependency table of docs/architecture.md: distribution -> files or folders that use it."""
    text = (ROOT / "docs/architecture.md").read_text()
    section = text.partition("## Dependencies")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\w-]+) \| (.+?) \| .+ \|$", section, flags=re.MULTILINE)
    return {canonical(name): tuple(re.findall(r"`([^`]+)`", users)) for name, users in rows if "`" in users}


def declared() -> frozenset[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in extras.values() for line in extra)]
    names = (re.match(r"[\w.-]+", line) for line in lines)
    return frozenset(canonical(found.group()) for found in names if found) - {"rankdrill"}


def test_every_dependency_is_documented() -> None:
    assert sorted(documented_users()) == sorted(declared())


def imported() -> list[tuple[str, str, str]]:
    """Return (distribution, file, complaint) for every import of something that must be installed."""
    owners = packages_distributions()
    beside = {source.name.split("/")[-1].removesuffix(".py") for source in sources("scenarios/workloads/")}
    found = []
    for source in sources("chaos/", "ci/", "harness/", "scenarios/"):
        for statement, module in imports(source):
            top = module.split(".")[0]
            if top in sys.stdlib_module_names or top in {"chaos", "harness", "scenarios", *beside}:
                continue
            for name in owners.get(top, [top]):
                owner = canonical(name)
                found.append((COMES_WITH.get(owner, owner), source.name, source.at(statement, f"imports {module}")))
    return found


def test_every_dependency_is_used_where_the_document_says() -> None:
    users = documented_users()
    wrong = [said for owner, name, said in imported() if not name.startswith(users.get(owner, ()))]
    assert not wrong, "\n".join(wrong) + "\nsay so in docs/architecture.md, or keep the import in its place"


def test_every_documented_user_uses_it() -> None:
    """A dependency that nobody imports is removed; a tool of ci/ or of tests/ is named as such."""
    found = imported()
    idle = [
        f"{owner}: {place}"
        for owner, places in documented_users().items()
        for place in places
        if not place.startswith(("ci/", "tests/"))
        and not any(used == owner and name.startswith(place) for used, name, _ in found)
    ]
    assert not idle, idle


def test_every_documented_user_exists() -> None:
    missing = [path for users in documented_users().values() for path in users if not (ROOT / path).exists()]
    assert not missing, missing
