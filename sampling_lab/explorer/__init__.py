"""Widgets over the library: `Explorer` for a model, `Toy` for typed-in words.

They are thin views: every number comes from the same calls that a script makes.
"""

from .explorer import Explorer
from .toy import Toy

__all__ = ["Explorer", "Toy"]
