"""Trained Rondo models from Python, through `rondo serve`. Standard library only.

load(path) starts a server for a run folder or model file and ends it with the model; connect(address) uses one that runs.
"""

from .model import Generation, Model, State, Translation, connect, load
from .transport import RondoError

__all__ = ["Generation", "Model", "RondoError", "State", "Translation", "connect", "load"]
