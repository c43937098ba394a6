"""Ways in which a bundle can be damaged, and the error that each has to end in."""

from reliability.damage.files import FILES
from reliability.damage.graphs import GRAPHS
from reliability.damage.kind import Damage
from reliability.damage.manifests import MANIFESTS

DAMAGES: list[Damage] = [*FILES, *MANIFESTS, *GRAPHS]
"""All of them."""
