"""Evaluates checked trees in Python, value by value as cel-go does, where the engine cannot give the server's answer.

The engine is faster and decides the usual selectors; this package knows all libraries of Kubernetes, and every error in
the words of the server.
"""

from dra_infra.cel.interpreter.program import Interpreter
from dra_infra.cel.interpreter.results import read_attribute, read_bool
from dra_infra.cel.interpreter.values import UndecidedError

__all__ = ["Interpreter", "UndecidedError", "read_attribute", "read_bool"]
