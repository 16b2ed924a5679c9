"""What one user may hold in a queue of YARN's Capacity Scheduler.

A user holds at most ``user-limit-factor`` times the capacity of the queue, also while nobody else asks for anything: with the default of 1,
a queue in which one user works never grows beyond its capacity, but by one container: a user who is below the limit gets the next. So the
limit here is at least the largest container of its users. Where users are the owners, each is a queue inside with this limit. Where
queues are the owners, a queue in which k users work has the limit of k users together, which is exact for one user.

``minimum-user-limit-percent`` below 100 divides a queue among its users, so that each of k users has the k-th part, but not less than this
part of the queue. Where users are the owners and the percentage allows it for all of them, they are equal; else they come in the order of
the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fairopt.clusters.yarn.resources import Offer
from fairopt.instance.queues import Queue, Quota

__all__ = ["OfOneUser"]


@dataclass(frozen=True, slots=True)
class OfOneUser:
    """What one user may hold in a queue.

    Attributes
    ----------
    limits : mapping
        By the label of a partition: the most of each resource; what is not named is not limited.
    least_percent : float
        Of the queue, the part below which its users are not pushed; 100: they are not divided at all.
    offers : sequence of Offer
    """

    limits: Mapping[str, Mapping[str, float]]
    least_percent: float
    offers: Sequence[Offer]

    @property
    def limits_anything(self) -> bool:
        """Whether there is a limit on any resource."""
        return any(self.limits.values())

    def divides(self, users: int) -> bool:
        """Return whether so many users have equal parts of the queue."""
        return self.least_percent < 100 and users * self.least_percent <= 100

    def with_room_for(self, containers: Iterable[tuple[str, Mapping[str, float]]]) -> OfOneUser:
        """Return it with room for one container of each of these, given by their labels and amounts.

        A user who holds less than the limit gets one container more, however large: so one that is larger than the limit alone starts.

        >>> offers = [Offer("h1", (), {"cpu": 8.0, "memory": 8.0})]
        >>> OfOneUser({"": {"cpu": 2.0, "memory": 2.0}}, 100, offers).with_room_for([("", {"cpu": 1.0, "memory": 3.0})]).limits
        {'': {'cpu': 2.0, 'memory': 3.0}}
        """
        limits = {label: dict(most) for label, most in self.limits.items()}
        for label, amounts in containers:
            own = limits.get(label, {})
            own.update({resource: max(most, amounts.get(resource, 0.0)) for resource, most in own.items()})
        return replace(self, limits=limits)

    def limited(self, queue: Queue, users: int = 1) -> Queue:
        """Return a queue that holds no more than so many users may; a guarantee above that is cut.

        >>> offers = [Offer("h1", (), {"cpu": 8.0, "memory": 8.0})]
        >>> OfOneUser({"": {"cpu": 2.0}}, 100, offers).limited(Queue("a", guarantee={"cpu": 5}, limit={"memory": 6}), 2).to_dict()
        {'name': 'a', 'guarantee': {'cpu': 4.0}, 'limit': {'memory': 6.0, 'cpu': 4.0}}
        """
        limit, guarantee = dict(queue.limit), dict(queue.guarantee)
        quotas = {frozenset(quota.servers): quota for quota in queue.quotas}
        for label, amounts in self.limits.items():
            most = {resource: users * amount for resource, amount in amounts.items()}
            on = [offer.name for offer in self.offers if offer.has(label)]
            if len(on) == len(self.offers):
                limit = _lower(limit, most)
                guarantee = _within(guarantee, limit)
            elif on and most:
                own = quotas.get(frozenset(on), Quota(on, name=f"partition {label or 'without label'}"))
                lower = _lower(own.limit, most)
                quotas[frozenset(on)] = Quota(on, _within(own.guarantee, lower), lower, name=own.name)
        return replace(queue, guarantee=guarantee, limit=limit, quotas=tuple(quotas.values()))


def _lower(limit: Mapping[str, float], most: Mapping[str, float]) -> dict[str, float]:
    return {**limit, **{resource: min(amount, limit.get(resource, amount)) for resource, amount in most.items()}}


def _within(guarantee: Mapping[str, float], limit: Mapping[str, float]) -> dict[str, float]:
    return {resource: min(amount, limit.get(resource, amount)) for resource, amount in guarantee.items()}
