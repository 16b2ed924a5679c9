"""What the certificate of an allocation says, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairopt.certificate import Certificate
from fairopt.wording import figure, printable, residual

if TYPE_CHECKING:
    from fairopt.allocation.allocation import Allocation

__all__ = ["hidden_by_rounding", "proof_of"]

_NEAR = 1e-6  # relative distance of a user's utility from its optimum, up to which the proof does not mention it


def proof_of(allocation: Allocation) -> str:
    """Return what the certificate says, as a sentence without its full stop (`Allocation.proof`)."""
    certificate, worst = allocation.certificate, residual(allocation.certificate.worst)
    if certificate.qualifier:
        blocked = allocation.details.get("blocked_by")
        stopped = f"; stopped at {printable(blocked)}, whose task did not fit" if blocked else ""
        if certificate.best_found and "bound" in allocation.details:
            value, bound = (figure(allocation.details[name], 6) for name in ("value", "bound"))
            stopped = f"; it reaches {value}, and no allocation more than {bound}: a gap of {figure(100 * allocation.details['gap'], 3)} %"
        if guarantee := allocation.details.get("guarantee"):
            stopped = f". Proved of {allocation.solver}: {guarantee}"
        beyond = f"kept to a relative error of {residual(certificate.feasibility)}" if certificate.feasibility else "all kept"
        return f"{certificate.qualifier.capitalize()}, so not an optimum. Limits recomputed: {beyond}{stopped}"
    if certificate.whole_tasks:
        return f"Exact by branch and cut: relative gap {worst}, as the engine reports it; limits recomputed"
    if certificate.reported_gap:  # the best of a set, chosen by branch and cut
        return f"Fairness recomputed; the best of all fair allocations by branch and cut: relative error or gap {worst}"
    if allocation.exact is not None and allocation.exact.radius:
        return f"Proved in rational and ball arithmetic: each user's optimum lies within a relative {worst}; limits kept exactly"
    if certificate.exact:
        return "Proved exact in rational arithmetic: no tolerance, recomputed from the answer in fractions and its prices"
    priced = allocation.prices is not None or allocation.queue_prices or any(level.prices is not None for level in allocation.levels)
    source = "answer and prices" if priced else "the answer"
    if certificate.doubt > _NEAR:
        return f"Certified optimum: relative error {worst}, recomputed from {source}; {hidden_by_rounding(certificate)}"
    return f"Certified exact: relative error {worst}, recomputed from {source}{_of_single_users(certificate)}"


def hidden_by_rounding(certificate: Certificate) -> str:
    """Return the doubt of a certificate in words; "" if it is too small to matter."""
    if certificate.doubt <= _NEAR:
        return ""
    return (
        "rounding hides prices or worths that decide who has how much: tasks may be off by a relative "
        f"{residual(certificate.doubt)} (an estimate; exact=True may prove them)"
    )


def _of_single_users(certificate: Certificate) -> str:
    """Return what the certificate of an alpha-fair goal proves of single users, if that is much weaker than its residual."""
    distance = certificate.distance
    if distance is None or distance <= _NEAR:
        return ""
    if distance < 1:
        return f"; the tasks of each user are proved to a relative {residual(distance)}"
    return "; it does not prove the tasks of users with little of the total worth"
