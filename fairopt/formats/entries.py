"""The entries of an instance file as pydantic models, and the JSON Schema that they make.

The models say which keys there are, what they hold, and what is meant by a key that is left out. They know nothing of other entries: that
names exist and are unique, :mod:`fairopt.formats.document` checks.

>>> User.model_validate({"name": "alice", "demand": {"cpu": 1}}).tasks
inf
>>> sorted(schema()["$defs"])
['Limit', 'On', 'Queue', 'Quota', 'Server', 'User']
"""

from __future__ import annotations

import ast
import inspect
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    WithJsonSchema,
)
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError

from fairopt.instance.attributes import Value, is_attribute
from fairopt.instance.quantities import BYTES_PATTERN, PATTERN, SHARE_PATTERN
from fairopt.wording import written

__all__ = ["ENTRIES", "Document", "Each", "Limit", "On", "Queue", "Quota", "Server", "User", "each_of", "schema", "single_values"]


@dataclass(frozen=True, slots=True)
class Each:
    """The mark of a key whose value is a mapping.

    Attributes
    ----------
    of : str
        What its keys are: "resource", "server" or "attribute".
    missing : float
        What is meant by one that is left out.
    """

    of: str
    missing: float = 0.0


def _whole(value: float) -> float:
    if not value.is_integer():
        raise PydanticCustomError("not_whole", "not a whole number")
    return value


def _integer(value: object) -> object:
    if isinstance(value, float) and not value.is_integer():
        raise PydanticCustomError("not_an_integer", "not a whole number")
    return int(value) if isinstance(value, float) else value


def _attribute(value: object) -> Value:
    if not is_attribute(value):
        raise PydanticCustomError("not_an_attribute", "neither text nor a finite number nor true or false")
    return value  # type: ignore[return-value]


def _hosts(value: object) -> str | list[str]:
    if not isinstance(value, str) and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        raise PydanticCustomError("not_hosts", "neither text nor a list of text")
    return value


def _places(value: object) -> str | list[str] | None:
    if value is None or isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        return value
    raise PydanticCustomError("not_places", "neither text nor a list of text")


def _some_places(value: object) -> str | list[str]:
    places = _places(value)
    if places is None:
        raise PydanticCustomError("not_places", "neither text nor a list of text")
    return places


def _amounts_of_tasks(value: object) -> dict[str, Any] | None:
    def fine(amount: object) -> bool:
        return isinstance(amount, int | float) and not isinstance(amount, bool) and 0 <= amount < math.inf

    if value is None:
        return value
    by_user = value if isinstance(value, dict) else {}
    each = [
        ((user, *at), a)
        for user, own in by_user.items()
        for at, a in ([((s,), a) for s, a in own.items()] if isinstance(own, dict) else [((), own)])
    ]
    wrong = [(at, a) for at, a in each if not (fine(a) and all(isinstance(name, str) for name in at))]
    if isinstance(value, dict) and not wrong and all(isinstance(user, str) for user in value):
        return value
    told = [" on ".join(map(str, at)) + f" is {written(a)}" for at, a in wrong[:1]]
    raise PydanticCustomError("not_amounts", "no mapping from users to numbers", {"wrong": told})


def _or_quantity(number: dict[str, Any], pattern: str = PATTERN) -> WithJsonSchema:
    """Return the JSON Schema of a number, or of a quantity in its place: :mod:`fairopt.formats.units` makes numbers of them first."""
    words = "A number with a unit, such as 500m or 1/3."
    if pattern == BYTES_PATTERN:
        words = "A number with a unit, such as 500m, 1/3 or 256GiB. A byte unit means bytes, for all amounts of a resource or for none."
    if pattern == SHARE_PATTERN:
        words = "A number with a unit, such as 500m or 1/3, or a percentage such as 50 %."
    quantity = {"type": "string", "format": "quantity", "pattern": pattern, "description": words}
    return WithJsonSchema({"anyOf": [number, quantity]})


_AT_LEAST_0: dict[str, Any] = {"type": "number", "minimum": 0}
_ABOVE_0: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0}


def _by_name(value: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a mapping from names to such values."""
    return {"type": "object", "patternProperties": {r"\S": value}, "additionalProperties": False}


Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"\S")]
Finite: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Number: TypeAlias = Annotated[Finite, _or_quantity(_AT_LEAST_0)]
Amount: TypeAlias = Annotated[Finite, _or_quantity(_AT_LEAST_0, BYTES_PATTERN)]  # of a resource
Share: TypeAlias = Annotated[Finite, _or_quantity(_AT_LEAST_0, SHARE_PATTERN)]
Positive: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False), _or_quantity(_ABOVE_0)]
Count: TypeAlias = Annotated[Finite, AfterValidator(_whole), WithJsonSchema({"type": "integer", "minimum": 0})]
AtMost: TypeAlias = Annotated[float, Field(ge=0), _or_quantity(_AT_LEAST_0, BYTES_PATTERN)]
Endless: TypeAlias = Annotated[float, Field(ge=0), _or_quantity(_AT_LEAST_0)]
Amounts: TypeAlias = Annotated[dict[Name, Amount], Each("resource")]
Limits: TypeAlias = Annotated[dict[Name, AtMost], Each("resource", missing=math.inf)]
Tier: TypeAlias = Annotated[int, BeforeValidator(_integer)]
Attribute: TypeAlias = Annotated[Value, PlainValidator(_attribute), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Hosts: TypeAlias = Annotated[
    str | list[str],
    PlainValidator(_hosts),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": r"\S"}, {"type": "array", "items": {"type": "string", "pattern": r"\S"}}]}),
]
Places: TypeAlias = Annotated[
    str | list[str] | None,
    PlainValidator(_places),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": r"\S"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]}),
]
AmountsOfTasks: TypeAlias = Annotated[
    dict[str, Any] | None,
    PlainValidator(_amounts_of_tasks),
    WithJsonSchema({"anyOf": [_by_name({"anyOf": [_AT_LEAST_0, _by_name(_AT_LEAST_0)]}), {"type": "null"}]}),
]
Weight: TypeAlias = Annotated[
    Annotated[Share, Tag("number")] | Annotated[dict[Name, Positive], Tag("mapping")],
    Discriminator(lambda value: "mapping" if isinstance(value, dict) else "number"),
    Each("resource", missing=1.0),
]


_TEXT_OR_LIST: dict[str, Any] = {"anyOf": [{"type": "string", "pattern": r"\S"}, {"type": "array", "items": {"type": "string"}}]}


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)  # built once, inside of `Document`


class Server(_Entry):
    """A server, or ``count`` identical ones."""

    name: Name
    """Its label, unique among the servers."""
    capacity: Amounts
    """What one server has of each resource; a resource left out is 0."""
    count: Count = 1
    """How many identical servers this entry stands for."""
    hosts: Hosts = ""
    """The names of these servers, all of them or none: a list, or text with ranges in brackets, "cn[1,3,5-7]"."""
    attributes: Annotated[dict[Name, Attribute], Each("attribute")] = {}
    """What the users' "requires" can ask for."""


class On(_Entry):
    """What a task takes, and how much work it does, on some servers."""

    servers: Annotated[str | list[str], PlainValidator(_some_places), WithJsonSchema(_TEXT_OR_LIST)]
    """These servers: by name, or by conditions on their attributes such as "model = V100"."""
    demand: Amounts = {}
    """What one task needs there of the resources named here; of the others as elsewhere."""
    speed: Number = 1.0
    """The work that a task does there; 0: the user cannot run there."""


class User(_Entry):
    """A user and what one of its tasks needs."""

    name: Name
    """Its label, unique among the users."""
    demand: Amounts
    """What one task needs of each resource; a resource left out is 0."""
    weight: Weight = 1.0
    """Priority among the users of its queue, 0: nothing beyond its guarantee. A mapping gives one per resource, then for every user."""
    queue: Name | None = None
    """The queue that it is in; left out: the root."""
    owner: Name | None = None
    """Who owns its tasks; left out: its queue, or itself where it is in the root."""
    guarantee: Number = 0.0
    """How many tasks it is guaranteed."""
    tasks: Endless = math.inf
    """How many tasks it has; left out: no limit."""
    parallelism: Annotated[float, Field(gt=0), _or_quantity(_ABOVE_0)] = math.inf
    """How many servers it can use at once (parts of servers, or of their time, add up); left out: no limit."""
    servers: list[str] | None = None
    """The only servers that it may use; left out: all that have what it needs."""
    requires: str | None = None
    """Conditions on the attributes of its servers, such as "gpu_model in V100|T4; cores >= 4"."""
    on: list[On] = []
    """Where its tasks take other amounts, or do another amount of work: an entry for each group of servers."""
    rates: Annotated[dict[Name, Number] | None, Each("server")] = None
    """How many of its tasks one server of each entry runs if it has the server to itself; all users or none; a server left out is 0."""


class Quota(_Entry):
    """What a queue is guaranteed and limited to on a group of servers."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["on"]}, {"required": ["servers"]}]})

    on: str | None = None
    """Conditions on the attributes of servers, such as "model = A100", in the language of "requires"."""
    servers: list[str] | None = None
    """The servers of the group by name; where "on" is there too, those of them that meet it."""
    name: str = ""
    """A word for the group in messages and tables; left out: what "on" says, or the servers."""
    guarantee: Amounts = {}
    """As of a queue, on these servers."""
    limit: Limits = {}
    """As of a queue, on these servers."""
    lending_limit: Amounts = {}
    """As of a queue, on these servers."""


class Queue(_Entry):
    """A queue: users and other queues, with what they are guaranteed and limited to together."""

    name: Name
    """Its label, unique among the queues."""
    parent: Name | None = None
    """The queue that this one is in; left out: the root."""
    weight: Share = 1.0
    """Priority among its siblings; 0: nothing beyond its guarantee."""
    guarantee: Amounts = {}
    """What it gets of each resource before anybody gets more than a guarantee, as far as its users ask for it."""
    limit: Limits = {}
    """What the users below it hold of each resource at most, together; a resource left out is not limited."""
    lending_limit: Amounts = {}
    """How much of its guarantee others may use while it does not; a resource left out: all of it."""
    tier: Tier = 0
    """What is left after the guarantees goes to the highest tier first; 0: that of its parent."""
    quotas: list[Quota] = []
    """Guarantees and limits on groups of servers."""
    order: Literal["fair", "listed"] = "fair"
    """How it divides what it gets: "fair", by weights, or "listed", first come, first served: each waits for all before it in this file."""


class Limit(_Entry):
    """What the users whom it selects hold together on the servers that it selects, or how many tasks they run there."""

    name: Name
    """Its label, unique among the limits, without a dot."""
    bound: Amount
    """The most that they hold of the resource, or the largest sum of amounts, or number of tasks; with "each", each of them by itself."""
    resource: Name | None = None
    """What counts is the demand for this resource; left out: the amounts, or each task as 1."""
    amounts: AmountsOfTasks = None
    """What a task counts, by user, or by user and server; who is left out counts 0. Not together with "resource"."""
    users: list[str] | None = None
    """The users that it selects; left out: all."""
    queues: list[str] | None = None
    """The queues whose users it selects; left out: all users."""
    servers: Places = None
    """The servers that it selects, by name, or by conditions on their attributes such as "model = A100"; left out: all."""
    each: Literal["user", "queue", "server"] | None = None
    """One such limit for each user, queue or server by itself; left out: one for all together."""


class Document(_Entry):
    """A cluster and the users who share it."""

    title: str = ""
    """A line about the instance."""
    description: str = ""
    """More about it: where it comes from, what it shows."""
    resources: list[Name] | None = None
    """The resources in order; left out: those in the servers' capacities, in order of appearance."""
    units: dict[Name, Name] = {}
    """Units of resources, such as GiB; left out: what the name of a resource says, as "RAM (GB)", and B where amounts have a byte unit."""
    servers: Annotated[list[Server], Field(min_length=1)]
    """What there is to share; left out where all resources are shared by the whole cluster."""
    shared: Amounts = {}
    """Resources of the whole cluster, which no server has, and their amounts: licences, the bandwidth of a file system."""
    queues: list[Queue] = []
    """The tree of queues that the users are in, in any order."""
    rules: list[str] = []
    """Linear conditions of any sign that every allocation obeys, such as "x['lab/alice'] >= 2 * x['course']"."""
    limits: list[Limit] = []
    """What some users hold together, wherever they are in the tree: named limits."""
    users: Annotated[list[User], Field(min_length=1)]
    """Who shares it."""


ENTRIES: dict[str, type[BaseModel]] = {"servers": Server, "users": User, "queues": Queue, "limits": Limit}
"""The lists of a document, and the model of an entry of each."""


def each_of(model: type[BaseModel], of: str = "") -> dict[str, Each]:
    """Return the keys of an entry whose values are mappings, of resources and the like if that is asked for.

    >>> list(each_of(Queue, "resource")), list(each_of(User)), each_of(Queue)["limit"].missing
    (['guarantee', 'limit', 'lending_limit'], ['demand', 'weight', 'rates'], inf)
    """
    found = {key: mark for key, field in model.model_fields.items() for mark in field.metadata if isinstance(mark, Each)}
    return {key: mark for key, mark in found.items() if of in ("", mark.of)}


def single_values(model: type[BaseModel]) -> dict[str, Any]:
    """Return the keys of an entry that have one value, beside its name, with what is meant where they are left out.

    >>> single_values(Queue)
    {'parent': None, 'weight': 1.0, 'tier': 0, 'quotas': [], 'order': 'fair'}
    """
    marks = each_of(model)
    return {key: field.default for key, field in model.model_fields.items() if key != "name" and (key not in marks or key == "weight")}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a document; the docstring below a key is its description.

    (pydantic would read the docstrings whenever this module is imported, and that takes longer than to check a file.)
    """

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: object) -> bool:
            return False  # the title "Name" would add nothing to the key "name"

    definition = Document.model_json_schema(schema_generator=Untitled)
    for model, described in (
        (Document, definition),
        *((kind, definition["$defs"][kind.__name__]) for kind in (Server, User, On, Queue, Quota, Limit)),
    ):
        for key, words in _docstrings(model).items():
            described["properties"][key] = dict(sorted({**described["properties"][key], "description": words}.items()))
    either = {"required": ["users"], "anyOf": [{"required": ["servers"]}, {"required": ["shared"]}]}
    return {"$schema": GenerateJsonSchema.schema_dialect, **definition, **either, "title": "Instance of fair allocation"}


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each key of a model."""
    (body,) = (node.body for node in ast.parse(inspect.getsource(model)).body if isinstance(node, ast.ClassDef))
    found = {}
    for key, words in pairwise(body):
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name):
            assert isinstance(words, ast.Expr)
            assert isinstance(words.value, ast.Constant)
            found[key.target.id] = inspect.cleandoc(str(words.value.value))
    return found
