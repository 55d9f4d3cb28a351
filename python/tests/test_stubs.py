"""The stubs of the extension module say what is there."""

from __future__ import annotations

import ast
import inspect
import pathlib

import pytest

import halite
from halite import _halite

STUBS = ast.parse((pathlib.Path(halite.__file__).parent / "_halite.pyi").read_text())


def arguments(function: ast.FunctionDef, bound: bool) -> tuple[list[str], list[str], int]:
    """Names by place, names by name only, and how many have defaults."""
    spec = function.args
    places = [a.arg for a in spec.posonlyargs + spec.args][1 if bound else 0 :]
    optional = len(spec.defaults) + sum(default is not None for default in spec.kw_defaults)
    return places, [a.arg for a in spec.kwonlyargs], optional


def told(of) -> tuple[list[str], list[str], int]:
    parameters = [p for p in inspect.signature(of).parameters.values() if p.name not in ("self", "cls")]
    by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [p.name for p in places], [p.name for p in by_name], sum(p.default is not p.empty for p in parameters)


CLASSES = [n for n in STUBS.body if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]
FUNCTIONS = [n for n in STUBS.body if isinstance(n, ast.FunctionDef)]


def test_every_name_has_a_stub():
    there = {name for name in dir(_halite) if not name.startswith("_")}
    assert {c.name for c in CLASSES} | {f.name for f in FUNCTIONS} == there
    assert there <= set(halite.__all__) and set(halite.__all__) <= set(dir(halite))


@pytest.mark.parametrize("stub", FUNCTIONS, ids=lambda stub: stub.name)
def test_functions_take_what_stubs_say(stub):
    assert told(getattr(_halite, stub.name)) == arguments(stub, bound=False)


@pytest.mark.parametrize("stub", CLASSES, ids=lambda stub: stub.name)
def test_classes_have_what_stubs_say(stub):
    real = getattr(_halite, stub.name)
    members = {m.name: m for m in stub.body if isinstance(m, ast.FunctionDef)}
    public = {name for name in vars(real) if not name.startswith("_")}
    assert {name for name in members if not name.startswith("_")} == public
    for name, member in members.items():
        is_static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in member.decorator_list)
        is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in member.decorator_list)
        found = getattr(real, name)
        assert callable(found) != is_property, f"{stub.name}.{name}"
        if name == "__new__":
            assert told(real) == arguments(member, bound=True)
        elif not is_property and not name.startswith("__"):
            assert told(found) == arguments(member, bound=not is_static), f"{stub.name}.{name}"
