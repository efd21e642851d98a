"""Every installed package is pinned, and every dependency is used in the one place that docs/architecture.md names."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions

from tests.meta.sources import ROOT, imports, sources

# What a CUDA build of torch brings is pinned by that build; pip comes with the interpreter.
NOT_PINNED = re.compile(r"pip|rankdrill|triton|nvidia-.*|cuda-.*")


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


def test_every_dependency_is_used_where_the_document_says() -> None:
    users = documented_users()
    owners = packages_distributions()
    wrong = []
    for source in sources("chaos/", "harness/", "scenarios/"):
        for statement, module in imports(source):
            top = module.split(".")[0]
            if top in sys.stdlib_module_names or top in {"chaos", "harness", "scenarios", ""}:
                continue
            names = [canonical(name) for name in owners.get(top, [top])]
            if not any(source.name.startswith(users.get(name, ())) for name in names):
                wrong.append(source.at(statement, f"{top}: docs/architecture.md gives it no place here"))
    assert not wrong, "\n".join(wrong)


def test_every_documented_user_exists() -> None:
    missing = [path for users in documented_users().values() for path in users if not (ROOT / path).exists()]
    assert not missing, missing
