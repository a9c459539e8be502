"""Evaluates checked trees value by value as cel-go does, with every library and the words of the server for every error."""

from dra_infra.kubernetes.cel.interpreter.program import Interpreter, read_attribute, read_bool
from dra_infra.kubernetes.cel.interpreter.values import UndecidedError

__all__ = ["Interpreter", "UndecidedError", "read_attribute", "read_bool"]
