"""Extensions of griffe, which reads the sources for the API reference."""

import re
from typing import Any

import griffe

_SESSION = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FunctionsBeforeModules(griffe.Extension):
    """Let a package's `simulate` be the function that it exports, not the module of that name.

    `from duelay.simulation.simulate import simulate` rebinds the name when Python runs it. griffe
    only reads the sources, and takes `duelay.simulation.simulate` for the module.
    """

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Follow the imports of every package, the inner ones first."""
        for module in [m for m in pkg.members.values() if isinstance(m, griffe.Module)]:
            self.on_package(pkg=module)
        for name in [str(export) for export in pkg.exports or ()]:
            if name in pkg.imports and pkg.members[name].is_module:
                found: Any = pkg.modules_collection["duelay"]
                for part in pkg.imports[name].split(".")[1:]:
                    found = found.members[part]
                if not found.is_module:
                    pkg.members[name] = griffe.Alias(name, found, parent=pkg)


class FencedSessions(griffe.Extension):
    """Put a session of Python that stands before a docstring's sections between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Do that in the docstring of one object."""
        if obj.docstring:
            before, rule, sections = obj.docstring.value.partition("\n---")
            fenced = _SESSION.sub(r"```pycon\n\g<0>\n```", before)
            obj.docstring.value = fenced + rule + sections
