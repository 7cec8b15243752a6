"""Changes modules at the end of their import, in whatever process imports them: for tests only."""

import importlib.util
import sys

PATCHES = {}


class Finder:
    """Finds no modules of its own; its `exec_module` calls the patches after the module's own."""

    def find_spec(self, name, path=None, target=None):
        patches = PATCHES.pop(name, ())
        if not patches:
            return None
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            for patch in patches:
                patch(module)

        spec.loader.exec_module = exec_module
        return spec


def after_import(patches):
    """Call each patch, named by its module, with that module, now or as soon as it is imported."""
    for name, patch in patches.items():
        if name in sys.modules:
            patch(sys.modules[name])
        else:
            PATCHES.setdefault(name, []).append(patch)


sys.meta_path.insert(0, Finder())
