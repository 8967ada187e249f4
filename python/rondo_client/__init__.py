"""Use trained Rondo models from Python through `rondo serve`. Standard library only.

load(path) starts a server for a run folder or model file and stops it with the model; connect(address) uses a running one.
"""

from .model import Generation, Model, State, Translation, connect, load
from .transport import RondoError

__all__ = ["Generation", "Model", "RondoError", "State", "Translation", "connect", "load"]
