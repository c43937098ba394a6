"""Ways in which a bundle can be damaged, and the error that each has to end in."""

from reliability.cases.damage.files import FILES
from reliability.cases.damage.graphs import GRAPHS
from reliability.cases.damage.kind import Damage
from reliability.cases.damage.manifests import MANIFESTS

DAMAGES: list[Damage] = [*FILES, *MANIFESTS, *GRAPHS]
"""All of them."""
