"""What YuniKorn's ``queues.yaml`` says: which fields the import reads, which it notes, which it ignores, and why.

>>> QUEUE.of("noted")["maxapplications"]
'how many applications run at once'
"""

from __future__ import annotations

from fairopt.clusters.fields import declared

__all__ = ["DECLARED", "LIMIT", "PARTITION", "PROPERTY", "QUEUE", "TEMPLATE"]

PARTITION = declared(
    "YuniKorn partition",
    """
    read | name, queues, limits | its queues, and what users may hold in all of them
    read | placementrules | the queue of pods that name none
    noted | nodesortpolicy | which node it takes first; its resourceweights compare nodes, and no queues
    ignored | preemption, statedumpfilepath | how YuniKorn gets to what is guaranteed
    """,
)

QUEUE = declared(
    "YuniKorn queue",
    """
    read | name, parent, queues, resources | its place in the tree, its guarantee and its limit
    read | properties, limits, childtemplate | are described below
    noted | maxapplications | how many applications run at once
    ignored | adminacl, submitacl | rights
    """,
)

TEMPLATE = declared(
    "YuniKorn childtemplate",
    """
    read | resources, properties | the guarantee, the limit and the policy of queues that placement rules make
    noted | maxapplications | how many applications run at once
    """,
)

LIMIT = declared(
    "YuniKorn limit",
    """
    read | users, groups, maxresources | what each user may hold; limits of groups are named in a note
    noted | maxapplications | how many applications of a user run at once
    ignored | limit | its description
    """,
)

PROPERTY = declared(
    "YuniKorn queue with properties",
    """
    read | application.sort.policy | the order of its applications
    read | application.sort.priority, priority.offset, priority.policy | its tier
    ignored | preemption.policy, preemption.delay, quota.preemption.delay | how YuniKorn gets to what is guaranteed
    """,
)

DECLARED = (PARTITION, QUEUE, TEMPLATE, LIMIT, PROPERTY)
