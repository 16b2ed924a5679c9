"""``queues.csv``: what it means, and what is said about tables that mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairopt as fo
from fairopt.formats.queue_tables import QueueTable

TABLES = {
    "servers.csv": "name,gpu,cpu,model\nA,8,64,A100\nB,4,32,V100\n",
    "users.csv": "name,gpu,cpu,weight,queue,guarantee,tasks\nalice,1,4,0,vision,3,\nbob,1,4,, research ,,7\ncarol,1,0,,,,\n",
    "queues.csv": (
        "name,parent,weight,tier,on,servers,group,guarantee:gpu,limit:gpu,limit:cpu,lending_limit:gpu\n"
        "vision,research,,,,,,,6,inf,\n"
        "vision,,,,model = A100,,,2,4,,0\n"
        "research,,2,-1,,,,8,,,\n"
        "vision,,,,,B|A,both,,,9,\n"
    ),
}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(**tables: str) -> fo.Instance:
    """Write the tables into a folder, some of them changed, and load it."""
    Path("lab").mkdir(exist_ok=True)
    for name, text in (TABLES | {f"{name}.csv": text for name, text in tables.items()}).items():
        Path("lab", name).write_text(text, encoding="utf-8", newline="")
    return fo.load("lab")


def test_every_column() -> None:
    """Rows of one name are one queue, in any order; an empty parent is the root."""
    instance = load()
    quotas = [fo.Quota(["A"], {"gpu": 2}, {"gpu": 4}, {"gpu": 0}, "model = A100"), fo.Quota(["B", "A"], limit={"cpu": 9}, name="both")]
    assert instance.queues == (
        fo.Queue("vision", "research", limit={"gpu": 6}, quotas=quotas),
        fo.Queue("research", weight=2, guarantee={"gpu": 8}, tier=-1),
    )
    assert instance.queue_of == ("vision", "research", None)
    assert instance.guarantees.tolist() == [3, 0, 0]
    assert instance.weights.tolist() == [0, 1, 1]


def test_what_is_written() -> None:
    """A row for each queue, then one for each of its quotas; no column without a cell; nothing of an earlier instance stays."""
    fo.save(load(), "copy")
    assert Path("copy/queues.csv").read_text() == (
        "name,parent,weight,tier,servers,group,guarantee:gpu,limit:gpu,limit:cpu,lending_limit:gpu\n"
        "vision,research,,,,,,6,,\n"
        "vision,,,,A,model = A100,2,4,,0\n"
        "vision,,,,B|A,both,,,9,\n"
        "research,,2,-1,,,8,,,\n"
    )
    assert Path("copy/users.csv").read_text() == (
        "name,gpu,cpu,weight,queue,guarantee,tasks\nalice,1,4,0,vision,3,\nbob,1,4,,research,,7\ncarol,1,0,,,,\n"
    )
    assert fo.load("copy") == load()
    fo.save(fo.Instance([[1]], [[1]]), "copy")
    assert sorted(path.name for path in Path("copy").iterdir()) == ["servers.csv", "users.csv"]


def test_names_with_spaces_around_them() -> None:
    """They mean nothing in a table, so one where they count is saved as YAML."""
    instance = fo.Instance([[1]], [[1], [1]], queues=[fo.Queue(" q"), fo.Queue("q", " q")], queue_of=["q", " q"])
    with pytest.raises(fo.InvalidInstance, match=r"^copy: the queue label ' q' begins or ends with a space, .*; save as \.yaml$"):
        fo.save(instance, "copy")
    fo.save(instance, "copy.yaml")
    assert fo.load("copy.yaml") == instance
    queues = "name,parent\nlab \u00a0,\n  vision , lab\n"
    load(users="name,gpu,cpu,queue\nalice ,1,1,vision \n", queues=queues)
    assert fo.load("lab").queue_of == ("vision",)
    assert fo.load("lab").users == ("alice",)


@pytest.mark.parametrize(
    ("servers", "name"), [(["a|b"], ""), ([" a"], ""), ([f"{k:05d}" for k in range(20_000)], ""), (["a"], "\0")], ids=repr
)
def test_quotas_that_need_yaml(servers: list[str], name: str) -> None:
    """A cell cannot hold every list of servers."""
    instance = fo.Instance([[1]] * len(servers), [[1]], servers=servers, queues=[fo.Queue("q", quotas=[fo.Quota(servers, name=name)])])
    with pytest.raises(fo.InvalidInstance, match=r'^copy: a quota of queue "q" has servers that do not fit into a cell; save as \.yaml$'):
        fo.save(instance, "copy")
    assert not Path("copy").exists()


COLUMNS = "name,parent,weight,tier,on,servers,group,limit:gpu,guarantee:gpu\n"
REST = "research,,,,,,,,\nvision,,,,,,,,\n"  # lines 2 and 3
REFUSED = [
    ("name,wieght\nq,1\n", 'lab/queues.csv, column "wieght": a queue has no "wieght" (did you mean "weight"?)'),
    (
        "name,place\nq,1\n",
        'lab/queues.csv, column "place": a queue has no "place"; '
        "there are name, parent, weight, tier, order, on, servers, group and guarantee:gpu and the like",
    ),
    ("name,limit:gpus\nq,1\n", 'lab/queues.csv, column "limit:gpus": there is no resource "gpus" (did you mean "gpu"?)'),
    ("name,limit:\nq,1\n", 'lab/queues.csv, column "limit:": there is no resource ""; the resources are gpu and cpu'),
    ("name\n", "lab/queues.csv: there are no rows below the names of the columns; there must be at least one"),
    (
        COLUMNS + REST + "q,,,,,,,two,\n",
        'lab/queues.csv, line 4, column "limit:gpu": expected a number, found the text "two"; '
        "write digits, or a quantity such as 500m, 1/3 or 256GiB",
    ),
    (
        COLUMNS + REST + "q,,,,,,,-1,\n",
        'lab/queues.csv, line 4, column "limit:gpu": queue "q", limit, gpu: expected a number >= 0, found -1.0',
    ),
    (
        COLUMNS + REST + "q,,,,,,,,inf\n",
        'lab/queues.csv, line 4, column "guarantee:gpu": queue "q", guarantee, gpu: expected a finite number, found inf',
    ),
    (
        COLUMNS + REST + "q,,,,,,,4,8\n",
        'lab/queues.csv, line 4, column "limit:gpu": queue "q", limit, gpu: '
        "the limit of gpu is 4, less than its guarantee of 8; raise or lower one",
    ),
    (COLUMNS + REST + "q,,-1,,,,,,\n", 'lab/queues.csv, line 4, column "weight": queue "q", weight: expected a number >= 0, found -1.0'),
    (COLUMNS + REST + "q,,,1.5,,,,,\n", 'lab/queues.csv, line 4, column "tier": queue "q", tier: expected a whole number, found 1.5'),
    (
        COLUMNS + REST + "q,visio,,,,,,,\n",
        'lab/queues.csv, line 4, column "parent": queue "q", parent: there is no queue "visio" (did you mean "vision"?); '
        "leave it out for the root",
    ),
    (
        COLUMNS + REST + "q,p,,,,,,,\np,q,,,,,,,\n",
        'lab/queues.csv, line 4, column "parent": queue "q", parent: '
        "the parents of queues go round in a circle: q -> p -> q; one must be in the root",
    ),
    (
        COLUMNS + REST + "vision,,,,,,,,\n",
        'lab/queues.csv, line 4, column "name": queue "vision" has a row already; '
        "rename one, or say with on or servers where this quota holds",
    ),
    (
        COLUMNS + REST + " ,,2,,,,,,\n",
        'lab/queues.csv, line 4, column "name": queue "", name: expected a name, found the text ""; give one that is not blank',
    ),
    (COLUMNS + REST + "q,,,,,,old,,\n", 'lab/queues.csv, line 4, column "group": a group is named, but no servers; fill in on or servers'),
    (
        COLUMNS + REST + "q,,,,,A,,,\n",
        'lab/queues.csv, line 4, column "name": queue "q" has a quota but no row of its own; add one without on and servers',
    ),
    (
        COLUMNS + REST + "vision,,2,,,A,,,\n",
        'lab/queues.csv, line 4, column "weight": this row is a quota; the weight stands in the queue\'s own row, so empty this cell',
    ),
    (
        COLUMNS + REST + "vision,,,,,A|C,,,\n",
        'lab/queues.csv, line 4, column "servers": queue "vision", quotas, item 1, servers, item 2: '
        'there is no server "C"; the servers are A and B',
    ),
    (
        COLUMNS + REST + "vision,,,,model = H100,,,,\n",
        'lab/queues.csv, line 4, column "on": queue "vision", quotas, item 1, on: no server is in this group; '
        "compare it with the attributes of the servers, or remove the quota",
    ),
    (
        COLUMNS + REST + "vision,,,,,A,,-2,\n",
        'lab/queues.csv, line 4, column "limit:gpu": queue "vision", quotas, item 1, limit, gpu: expected a number >= 0, found -2.0',
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused_tables(text: str, message: str) -> None:
    """With the line and the column."""
    with pytest.raises(fo.InvalidInstance) as caught:
        load(queues=text)
    assert str(caught.value).removeprefix("3 mistakes:\n").partition("\nlab/users.csv")[0] == message  # the users' queues are not there


def test_a_user_in_an_unknown_queue() -> None:
    """With the line of the user."""
    with pytest.raises(fo.InvalidInstance) as caught:
        load(users="name,gpu,cpu,queue\nalice,1,1,visoin\n")
    assert str(caught.value) == (
        'lab/users.csv, line 2, column "queue": user "alice", queue: there is no queue "visoin" (did you mean "vision"?); '
        "leave it out for the root"
    )


def test_places_of_what_is_not_there() -> None:
    """The place of the whole is the file."""
    Path("queues.csv").write_text("name\nq\n")
    assert QueueTable(Path("queues.csv"), ["gpu"]).place(("queues",)) == "queues.csv"
