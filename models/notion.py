"""The base class of the notions of fairness: a name, a citation, what theory proves of the notion, and Instance -> Program."""

from __future__ import annotations

import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.by_server import refuse_by_server
from fairopt.instance.fractions import ExactArray, fractions_of
from fairopt.models.queue_tree import check_no_queues
from fairopt.program import Program
from fairopt.program.exact import ExactProgram
from fairopt.program.filling import Criterion

__all__ = ["Condition", "Notion", "Property", "Sharing", "default_sharing"]

Sharing: TypeAlias = Literal["rdm", "tdm"]

_BESIDE = frozenset(  # what has no part in the program; data of pairs are compared before rows are merged
    {"check", "check_queues", "criterion", "describe_measure", "merge_alpha", "merges", "promise", "restricted", "shares", "yardstick"}
    | {"exact_utility", "utility"}
)


class Property(Enum):
    """Properties that the literature proves or refutes for notions of fairness."""

    SHARING_INCENTIVE = "sharing-incentive"
    ENVY_FREENESS = "envy-freeness"
    PARETO = "pareto"
    BOTTLENECK_FAIRNESS = "bottleneck-fairness"
    SINGLE_RESOURCE_FAIRNESS = "single-resource-fairness"
    POPULATION_MONOTONICITY = "population-monotonicity"
    STRATEGY_PROOFNESS = "strategy-proofness"
    NO_JUSTIFIED_COMPLAINTS = "no-justified-complaints"


class Condition(Enum):
    """What the proofs of a notion's properties assume about an instance. The value completes the phrase "proved where ..."."""

    RESOURCES = "resources are divided, not time"
    EVERYWHERE = "every user may run on every server"
    POSITIVE = "every user demands something of every resource"
    ENDLESS = "no user runs out of tasks"

    def met(self, instance: Instance, sharing: Sharing) -> bool:
        """Does the instance meet the condition? Users without an eligible server and rows with count 0 are ignored."""
        users = instance.servable
        return {
            Condition.RESOURCES: sharing == "rdm",
            Condition.EVERYWHERE: bool(instance.eligibility[np.ix_(users, instance.counts > 0)].all()),
            Condition.POSITIVE: bool((instance.demands_by_kind[users] > 0).all()),
            Condition.ENDLESS: bool(np.isinf(instance.tasks[users]).all()),
        }[self]


def default_sharing(instance: Instance) -> Sharing:
    """Return "rdm", resource division; for an instance with rates "tdm", time division, as then only time is shared."""
    return "rdm" if instance.rates_per_server is None else "tdm"


class Notion(ABC):
    """A notion of fairness. A subclass declares one; an entry in ``fairopt.NOTIONS`` makes it known to solvers, reports and commands.

    Class attributes: ``name`` (the identifier), ``title``, ``source`` (citation), ``references`` (keys of the source in
    fairopt/papers/references.bib, for BibTeX), ``satisfies`` (property -> citation of its proof),
    ``conditions`` (what these proofs assume about an instance; empty if nothing), ``weights_per_resource`` (does it accept weights of
    shape (users, resources)?).

    Options are the fields of a subclass that is a frozen dataclass. Two notions are equal if their classes and all their options are.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    references: ClassVar[tuple[str, ...]] = ()
    satisfies: ClassVar[Mapping[Property, str]] = {}
    conditions: ClassVar[frozenset[Condition]] = frozenset()
    weights_per_resource: ClassVar[bool] = False
    divides_requests: ClassVar[bool] = False
    """Is a user without a limit on its tasks taken to request one task?"""
    proofs_cover_shared: ClassVar[bool] = False
    """Do the proofs of its properties hold with resources of the whole cluster, too?"""
    proofs_cover_work: ClassVar[frozenset[Property]] = frozenset()
    """Which of its properties are proved where tasks take other amounts, and do other work, on other servers? Pareto optimality is."""
    share_is_part: ClassVar[bool] = False
    """Is a share a fraction, to be printed in percent?"""

    symmetric: ClassVar[bool] = False
    """Does the program depend on nothing of users and servers but the data of the instance and ``utility``, never on a name or a position?

    Then rows of an instance that are alike are merged before the notion sees them. The declaration is about the methods of its own class
    and of those that it inherits from: a class that overrides one of these, such as ``share_per_task`` or ``formulate``, declares it anew
    if it still holds. The program of any other notion is reduced instead (`fairopt.program.reduction`), which gives the same answer.
    """

    by_server: ClassVar[bool] = False
    """Does the notion follow demands and speeds by server (`fairopt.instance.by_server`)? Any other refuses such an instance."""
    not_by_server: ClassVar[str] = "measures tasks that are the same everywhere"
    """Why it does not, after its name."""

    utility: FloatArray | None = None
    """The notion's own data about pairs, (users, servers) or (users, 1), or None. Rows that differ in it are not merged."""

    @property
    def exact_utility(self) -> ExactArray | None:
        """``utility`` in fractions."""
        return None if self.utility is None else fractions_of(self.utility)

    @property
    def exactly(self) -> Notion:
        """The notion with its own data in fractions, as `in_fractions` needs it."""
        utility = self.exact_utility
        return self if utility is None else self.changed(utility=utility)

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation of a proof that covers this instance, or None if there is none.

        Of the proofs cited, only those of Pareto optimality cover named limits, rules and limits on parallelism: they hold for any rows.
        Nor do the others cover resources of the whole cluster, unless there is one server, which might as well have them.
        """
        if wanted is not Property.PARETO and instance.differs_by_server and wanted not in self.proofs_cover_work:
            return None
        of_cluster = bool(instance.shared) and instance.counts.sum() != 1 and not self.proofs_cover_shared
        if wanted is not Property.PARETO and (of_cluster or instance.limited.any() or instance.limits or instance.rules):
            return None
        return self.satisfies.get(wanted) if all(condition.met(instance, sharing) for condition in self.conditions) else None

    def restricted(self, users: IntArray | None = None, servers: IntArray | None = None) -> Notion:
        """Return this notion for an instance that has only the users and servers at these positions; None keeps all.

        The notion's own data about users and servers is restricted in the same way. The default restricts ``utility``; a notion with other
        such data extends this method.
        """
        if self.utility is None:
            return self
        exact: ExactArray | None = getattr(self, "_exact", None)
        data = self.utility if exact is None else exact
        rows = data if users is None else data[users]
        columns = rows if servers is None or rows.shape[1] == 1 else rows[:, servers]
        return self.changed(utility=columns) if columns is not data else self

    @property
    def without_rows(self) -> Notion:
        """The notion without rows of one's own: itself, unless a program has some."""
        return self

    @property
    def options(self) -> dict[str, Any]:
        """The options of the notion with their values, by name; arguments by keyword only, such as those of trees, come last.

        Fields whose metadata say "if given" are left out while they are None.
        """
        fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        every = {field.name: getattr(self, field.name) for field in sorted(fields, key=lambda each: bool(each.kw_only))}
        silent = {field.name for field in fields if "if given" in field.metadata and every[field.name] is None}
        return {name: value for name, value in every.items() if name not in silent}

    @property
    def chosen_options(self) -> dict[str, Any]:
        """Those of the ``options`` by keyword only that the class does not state already, and all others."""
        fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        by_class = ((field.name, getattr(type(self), field.name, dataclasses.MISSING)) for field in fields if field.kw_only)
        silent = {name for name, stated in by_class if _comparable(getattr(self, name)) == _comparable(stated)}
        return {name: value for name, value in self.options.items() if name not in silent}

    def _identity(self) -> tuple[Any, ...]:
        """Return what makes this notion the one that it is, comparable and hashable: its class, its options, its own public data."""
        own = self.options | {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return type(self), *((name, _comparable(own[name])) for name in sorted(own))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.chosen_options.items())})"

    def changed(self, **values: object) -> Self:
        """Return a copy with other values of some attributes that the notion has."""
        changed = copy.copy(self)
        for name, value in values.items():
            if not hasattr(self, name):
                raise AttributeError(f'"{self.name}" has no attribute "{name}"')
            object.__setattr__(changed, name, value)
        return changed

    def merges(self, instance: Instance) -> bool:
        """Can identical rows of this instance be merged without changing the answer? Asked of notions that are ``symmetric``."""
        return True

    @property
    def is_symmetric(self) -> bool:
        """Is ``symmetric`` declared of all methods that make the program? A class that overrides one declares it anew.

        >>> import fairopt as fo
        >>> class ByName(fo.NOTIONS["drfh"]):
        ...     def share_per_task(self, instance):
        ...         return super().share_per_task(instance) / [len(user) for user in instance.users]
        >>> fo.NOTIONS["drfh"]().is_symmetric, ByName().is_symmetric
        (True, False)
        """
        classes, options = type(self).__mro__, getattr(self, "__dataclass_fields__", {})
        methods = {name for name, value in vars(self).items() if callable(value) and name not in options}
        for k, cls in enumerate(classes):
            own = {name for name in methods if not name.startswith("__")} - _BESIDE
            if any(name in vars(base) for name in own for base in classes[k:]):
                return False
            if "symmetric" in vars(cls):
                return bool(vars(cls)["symmetric"])
            methods = {name for name, value in vars(cls).items() if callable(value) or hasattr(value, "__get__")}
        return False

    def treats_alike(self, instance: Instance) -> bool:
        """Do users, and servers, of equal data get the same, so that the notion may be given them as one row?"""
        return self.is_symmetric and self.merge_alpha is not None and self.merges(instance)

    @property
    def merge_alpha(self) -> float | None:
        """The alpha by which merged users divide their tasks, in proportion to phi[n]^(1/alpha); None if nothing may be merged."""
        return 1.0

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse instances to which the notion does not apply. Subclasses extend it.

        Raises
        ------
        Unsupported
            The notion does not take these rates, weights or queues, or this sharing.
        InvalidInstance
            Data of the notion, such as ``utility``, do not fit the instance.
        """
        if instance.rates_per_server is not None and sharing == "rdm":
            raise Unsupported(
                "the instance gives rates, so its servers can only be shared by time, and sharing='rdm' has no meaning for it; "
                "leave sharing out or use sharing='tdm'"
            )
        if not self.by_server:
            what = f'"{self.name}" {self.not_by_server}'
            refuse_by_server(instance, what, 'use "cdrf", "tsf", "max-min" or "proportional"')
        self.check_queues(instance)
        if instance.weights.ndim == 2 and not self.weights_per_resource:
            raise Unsupported(
                f'the notion "{self.name}" takes one weight per user, but the instance has one per user and resource; '
                'give weights of shape (users,), or use "drf" or "drfh"'
            )

    def check_queues(self, instance: Instance) -> None:
        """Refuse queues, guarantees and weights of 0. A notion that takes them overrides this method.

        Raises
        ------
        Unsupported
            The instance has one of these.
        """
        check_no_queues(self.name, instance)

    def in_tasks(self, instance: Instance, table: FloatArray) -> FloatArray:
        """Return the tasks, (users, servers), that columns of the program stand for; by default they are tasks."""
        return table

    @abstractmethod
    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Return the program of the notion for this instance."""

    def in_fractions(self, instance: Instance, program: Program) -> ExactProgram:
        """Return the program in fractions, for ``solve(..., exact=True)``.

        Parameters
        ----------
        instance : Instance
            In fractions: `fairopt.Instance.exact`.
        program : Program
            Of the same instance, in floats.

        Raises
        ------
        Unsupported
            If the notion has no answer in fractions.
        """
        raise Unsupported(
            f'"{self.name}" is not solved in fractions; leave exact out, or use "drfh" or another notion that equalises a share'
        )

    def shares(self, instance: Instance, tasks: FloatArray) -> FloatArray | None:
        """Return the notion's shares of an allocation ``tasks`` (users, servers), of shape (users,) or (users, servers).

        The default, None, means the shares that the goal compares, sum_i u[n,i] x[n,i] / phi[n]. A notion whose goal is an `Equilibrium`
        returns its own.
        """
        return None

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return the measure of a user (given by its position), as the end of a sentence that begins "alice is measured by".

        `fairopt.explain` prints the sentence. The default names the notion; a subclass may say more.
        """
        return f"the rules of {self.name} ({self.title})"

    yardstick = describe_measure  # the former name of this hook

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        for method in ("__eq__", "__hash__", "__repr__"):  # else a dataclass would make its own of its fields alone
            if method not in vars(cls):
                setattr(cls, method, getattr(cls, method))
        for name, other in (("yardstick", "describe_measure"), ("describe_measure", "yardstick")):  # a class has both or neither
            if name in vars(cls) and other not in vars(cls):
                setattr(cls, other, vars(cls)[name])

    def criterion(self, instance: Instance) -> Criterion:
        """Return the share by which progressive filling chooses the next user.

        Raises
        ------
        Unsupported
            If the notion equalises no share.
        """
        raise Unsupported(
            f'"{self.name}" equalises no share of the users, so it cannot be the criterion of a schedule; '
            'use a max-min notion such as "drfh", or "psdsf"'
        )


def _comparable(value: Any) -> Any:
    """Return a value that is equal to, and hashed as, that of an equal option: of arrays and lists shape and numbers."""
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), _comparable(each)) for name, each in value.items()))
    if isinstance(value, list | tuple) or hasattr(value, "__array__"):
        array = np.asarray(value)
        return array.shape, tuple(array.ravel().tolist())
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value
