"""What decides is pure: same inputs, same outputs, in every process and under every PYTHONHASHSEED.

Imports are held by import-linter (pyproject.toml), indirect ones too. Here stands what an import graph cannot show.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.meta.sources import PURE, Source, imports, sources

BANNED_MODULES = frozenset(
    {
        *("asyncio", "datetime", "logging", "os", "random", "secrets", "socket", "subprocess", "threading", "time"),
        *("torch", "uuid", "yaml", "pathlib", "io", "sys", "signal", "multiprocessing", "concurrent", "tempfile"),
    }
)
# hash() and id() differ from process to process; the others talk to the world.
BANNED_CALLS = frozenset({"hash", "id", "open", "print", "input", "eval", "exec", "__import__"})
# Calls whose result does not depend on the order of what they are given. sum is not one: sums of floats depend on it.
INDIFFERENT_CALLS = frozenset({"sorted", "set", "frozenset", "len", "any", "all", "min", "max"})
ORDERED_CALLS = frozenset({"list", "tuple", "enumerate", "iter", "zip", "map", "filter", "reversed", "next", "sum"})
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


class SetNames(ast.NodeVisitor):
    """Collects the names and attributes that a file annotates as, or assigns from, a set."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._learn(node.target, is_set_annotation(node.annotation))

    def visit_arg(self, node: ast.arg) -> None:
        if node.annotation is not None and is_set_annotation(node.annotation):
            self.names |= {node.arg}

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._learn(target, is_set(node.value, self.names))
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        # A function or property that returns a set counts under its name.
        if node.returns is not None and is_set_annotation(node.returns):
            self.names |= {node.name}
        self.generic_visit(node)

    def _learn(self, target: ast.expr, holds_set: bool) -> None:
        if holds_set and isinstance(target, ast.Name):
            self.names |= {target.id}
        elif holds_set and isinstance(target, ast.Attribute):
            self.names |= {target.attr}


def is_set_annotation(annotation: ast.expr) -> bool:
    """Whether an annotation says set or frozenset at its top, as in `frozenset[int] | None`."""
    if isinstance(annotation, ast.BinOp):
        return is_set_annotation(annotation.left) or is_set_annotation(annotation.right)
    head = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(head, ast.Name) and head.id in {"set", "frozenset", "AbstractSet", "MutableSet"}


def is_set(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression is visibly a set, as far as one file can tell."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=function)):
            return function in {"set", "frozenset"} or function in names
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in SET_METHODS or method in names
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, SET_OPERATORS):
            return is_set(left, names) or is_set(right, names) or is_keys(left) or is_keys(right)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
    return False


def is_keys(node: ast.expr) -> bool:
    """Whether an expression is `mapping.keys()`, whose operators give sets."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"keys", "items"}


def iterated(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield every expression whose order reaches the program."""
    for node in ast.walk(tree):
        match node:
            case ast.For(iter=target) | ast.comprehension(iter=target) | ast.Starred(value=target):
                yield target
            case ast.Call(func=ast.Name(id=function), args=args) if function in ORDERED_CALLS:
                yield from args
            case ast.Call(func=ast.Attribute(attr="join" | "fromkeys" | "extend"), args=[first, *_]):
                yield first
            case ast.Call(func=ast.Attribute(attr="pop", value=owner), args=[]):
                yield owner


def order_free(tree: ast.AST) -> frozenset[int]:
    """Return the identities of what is iterated where order is lost: into a set, or in a call that does not care."""
    makes_set = [node for node in ast.walk(tree) if isinstance(node, ast.SetComp)]
    given = [
        argument
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in INDIFFERENT_CALLS
        for argument in node.args
        if isinstance(argument, ast.GeneratorExp | ast.ListComp)
    ]
    return frozenset(id(generator.iter) for node in (*makes_set, *given) for generator in node.generators)


def complaints(source: Source) -> list[str]:
    found = [
        source.at(statement, f"imports {module}; a pure module takes what it needs as an argument")
        for statement, module in imports(source)
        if module.split(".")[0] in BANNED_MODULES
    ]
    found += [
        source.at(node, f"calls {node.func.id}()")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BANNED_CALLS
    ]
    names = SetNames()
    # Twice, since a name may be used above the place where it is learnt to be a set.
    names.visit(source.tree)
    names.visit(source.tree)
    free = order_free(source.tree)
    found += [
        source.at(target, f"iterates over the set {ast.unparse(target)}; sort it first")
        for target in iterated(source.tree)
        if id(target) not in free and is_set(target, names.names)
    ]
    return found


@pytest.mark.parametrize("source", sources(*PURE), ids=lambda source: source.name)
def test_pure_module(source: Source) -> None:
    found = complaints(source)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "from os import path",
        "def f():\n    import random",
        "x = hash('a')",
        "print(1)",
        "for x in {1, 2}: pass",
        "y = [x for x in set(z)]",
        "y = list(frozenset(z))",
        "def f(dead: frozenset[int]):\n    for x in dead: pass",
        "def f(self):\n    self.dead = set()\n    return tuple(self.dead)",
        "class A:\n    dead: set[int]\n    def f(self):\n        return [*self.dead]",
        "y = ','.join({'a', 'b'})",
        "for x in a.keys() - b: pass",
        "def f(dead: set[int]):\n    return dead.pop()",
        "def f(dead: set[int]):\n    return {x: 1 for x in dead}",
    ],
)
def test_the_check_sees(line: str) -> None:
    assert complaints(Source("made-up.py", line, ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "for x in sorted({1, 2}): pass",
        "y = 1 in {1, 2}",
        "def f(dead: set[int]):\n    return any(x for x in dead)",
        "def f(dead: set[int]):\n    return sorted(x for x in dead if x)",
        "def f(dead: set[int]):\n    return {x + 1 for x in dead}",
        "for x in [1, 2]: pass",
        "import math",
        "y = a - b\nfor x in range(y): pass",
    ],
)
def test_the_check_lets_pass(line: str) -> None:
    assert not complaints(Source("made-up.py", line, ast.parse(line)))
