"""Widgets over the library: `Explorer` and `Compare` for a model, `Toy` for words.

They are thin views: every number comes from the same calls that a script makes.
"""

from .compare import Compare
from .explorer import Explorer
from .toy import Toy

__all__ = ["Compare", "Explorer", "Toy"]
