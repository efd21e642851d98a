"""Which injector applies which kind of fault. Explicit: nothing registers itself."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.injector import Checked
from chaos.injectors.noop import Noop
from chaos.injectors.process import Kill, Stop

Catalog = Mapping[str, Checked]


def default_catalog() -> dict[str, Checked]:
    """Return a new catalogue of every kind in chaos/fault.py's table."""
    checked = (Checked(Kill()), Checked(Stop()), Checked(Noop()))
    return {injector.kind: injector for injector in checked}
