"""What limits and rules can name: users, servers, resources and queues, and the attributes of servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairopt.instance.queues import Queue
from fairopt.instance.tree import Tree

if TYPE_CHECKING:
    from fairopt.instance.derived import Derived

__all__ = ["Named"]


@dataclass(frozen=True, slots=True)
class Named:
    """The labels of an instance, before there is one.

    Attributes
    ----------
    users, servers, resources : sequences of str
    queues : sequence of Queue
    queue_of : sequence of (str or None), one a user
    attributes : sequence of mappings, one a row of servers
    """

    users: Sequence[str]
    servers: Sequence[str]
    resources: Sequence[str]
    queues: Sequence[Queue]
    queue_of: Sequence[str | None]
    attributes: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, instance: Derived) -> Named:
        """Return those of an instance."""
        return cls(instance.users, instance.servers, instance.resources, instance.queues, instance.queue_of, instance.attributes)

    @property
    def tree(self) -> Tree:
        """The tree of queues and users."""
        return Tree.of(tuple(self.queues), tuple(self.queue_of), tuple(self.users))
