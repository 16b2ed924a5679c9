"""Named tuples of arrays, which compiled steps pass on by reference.

numba passes a named tuple by value. One of 60 arrays is 500 numbers: each call copies them, and the compiler carries them through each line
that reads an array. Here a named tuple is one pointer to these numbers, and a step reads those of the arrays that it names. So a step is
compiled in about half the time, and calls take no longer than those of a step with three numbers.

A step may change what is in an array, but a named tuple names the same arrays for ever. The compiler is told so (``invariant.load``), and
reads an array's address and shape once, not in each round of a loop.

This module imports numba; `fairopt.solvers.compiled` imports it when a step is compiled.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator"
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, models, register_model, typeof_impl, unbox

__all__ = ["ByReference", "pass_by_reference"]


class ByReference(types.Type):
    """numba's type of a reference to a named tuple; ``tuple_type`` is its type of the named tuple itself."""

    def __init__(self, tuple_type: Any) -> None:
        self.tuple_type = tuple_type
        super().__init__(name=f"ByReference({tuple_type})")


@register_model(ByReference)
class _Pointer(models.PrimitiveModel):
    def __init__(self, manager: Any, reference: ByReference) -> None:
        super().__init__(manager, reference, manager[reference.tuple_type].get_value_type().as_pointer())


@infer_getattr
class _Members(AttributeTemplate):
    key = ByReference

    def generic_resolve(self, reference: ByReference, name: str) -> Any:  # type: ignore[override]
        fields = reference.tuple_type.fields
        return reference.tuple_type[fields.index(name)] if name in fields else None


@lower_getattr_generic(ByReference)
def _member(context: Any, builder: Any, reference: ByReference, pointer: Any, name: str) -> Any:
    at = reference.tuple_type.fields.index(name)
    kind = reference.tuple_type[at]
    value = _loaded(builder, cgutils.gep_inbounds(builder, pointer, 0, at), context.get_value_type(kind))
    return impl_ret_borrowed(context, builder, kind, value)


def _loaded(builder: Any, pointer: Any, kind: Any) -> Any:
    """Load number by number: of a structure that is loaded as a whole, the compiler forgets that it does not change."""
    if isinstance(kind, ir.Aggregate):
        value = ir.Constant(kind, ir.Undefined)
        for k, part in enumerate(kind.elements):
            value = builder.insert_value(value, _loaded(builder, cgutils.gep_inbounds(builder, pointer, 0, k), part), k)
        return value
    number = builder.load(pointer)
    number.set_metadata("invariant.load", builder.module.add_metadata([]))
    return number


@unbox(ByReference)
def _pointer_to(reference: ByReference, given: Any, wrapper: Any) -> NativeValue:
    """Make the numbers where the caller, Python, waits for the step, and give back the arrays at its end."""
    members = wrapper.unbox(reference.tuple_type, given)

    def give_back() -> None:
        if members.cleanup is not None:
            members.cleanup()
        if wrapper.context.enable_nrt:  # numba does it itself for what it passes by value
            wrapper.context.nrt.decref(wrapper.builder, reference.tuple_type, members.value)

    return NativeValue(cgutils.alloca_once_value(wrapper.builder, members.value), is_error=members.is_error, cleanup=give_back)


def pass_by_reference(*arguments: Any) -> None:
    """Let numba pass those of the arguments that are named tuples, and all others of their classes, by reference from now on."""
    for kind in {type(argument) for argument in arguments if hasattr(argument, "_fields")}:
        typeof_impl.register(kind, _typeof)


def _typeof(given: Any, context: Any) -> ByReference | None:
    members = [typeof_impl(member, context) for member in given]
    return None if None in members else ByReference(types.BaseTuple.from_types(members, type(given)))
