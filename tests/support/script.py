# SPDX-License-Identifier: Apache-2.0
"""A Python script without .py in its name, as a module."""
import importlib.util
import os
import sys
from importlib.machinery import SourceFileLoader

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))


def load(path):
    """path: from the project's directory"""
    sys.dont_write_bytecode = True      # it would lie beside the script
    loader = SourceFileLoader(os.path.basename(path), os.path.join(TOP, path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
