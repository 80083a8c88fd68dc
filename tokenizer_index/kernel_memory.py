"""What all kernels are made of: access to memory by address, and the decorators that mark what is compiled.

This module needs Numba; programs don't import it (see ``kernels``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir as llvm
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as _typed_intrinsic

from constrain.tokenizer_index.layout import CAPACITY, IS_CHECKED

# Numba's annotations describe intrinsics as Python sees them, with a typing context; kernels call them without.
intrinsic: Any = _typed_intrinsic

VIEW = types.UniTuple(types.int64, 2)


def _checked(context, builder, view, index):
    """Emit the bounds check of the checked build."""
    if IS_CHECKED:
        capacity = builder.extract_value(view, 1)
        outside = builder.icmp_unsigned(">=", index, capacity)
        with builder.if_then(outside, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("kernel table index out of range",))


def _loader(bits, is_signed):
    @intrinsic
    def load(typing_context, view, index):
        def generate(context, builder, signature, arguments):
            view, index = arguments
            _checked(context, builder, view, index)
            item = llvm.IntType(bits)
            base = builder.inttoptr(builder.extract_value(view, 0), item.as_pointer())
            value = builder.load(builder.gep(base, [index]))
            if bits == 64:
                return value
            return (builder.sext if is_signed else builder.zext)(value, llvm.IntType(64))

        return types.int64(VIEW, types.int64), generate

    return load


def _storer(bits):
    @intrinsic
    def store(typing_context, view, index, value):
        def generate(context, builder, signature, arguments):
            view, index, value = arguments
            _checked(context, builder, view, index)
            item = llvm.IntType(bits)
            base = builder.inttoptr(builder.extract_value(view, 0), item.as_pointer())
            if bits < 64:
                value = builder.trunc(value, item)
            builder.store(value, builder.gep(base, [index]))
            return context.get_dummy_value()

        return types.none(VIEW, types.int64, types.int64), generate

    return store


get8 = _loader(8, False)
get16 = _loader(16, True)
get32 = _loader(32, True)
get64 = _loader(64, True)
put16 = _storer(16)
put32 = _storer(32)
put64 = _storer(64)


@intrinsic
def product(typing_context, x, y):
    """Multiply modulo 2**64, for hashes.

    Numba lets LLVM assume that ``*`` of signed integers doesn't overflow: where it sees that a product must, it may
    take any number for it.
    """

    def generate(context, builder, signature, arguments):
        return builder.mul(*arguments)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def header(typing_context, h, slot):
    """Read one slot of the header."""

    def generate(context, builder, signature, arguments):
        base = builder.inttoptr(arguments[0], llvm.IntType(64).as_pointer())
        return builder.load(builder.gep(base, [arguments[1]]))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def set_header(typing_context, h, slot, value):
    """Write one slot of the header."""

    def generate(context, builder, signature, arguments):
        base = builder.inttoptr(arguments[0], llvm.IntType(64).as_pointer())
        builder.store(arguments[2], builder.gep(base, [arguments[1]]))
        return context.get_dummy_value()

    return types.none(types.int64, types.int64, types.int64), generate


@intrinsic
def view(typing_context, h, table):
    """Return (address, capacity) of a table."""

    def generate(context, builder, signature, arguments):
        i64 = llvm.IntType(64)
        base = builder.inttoptr(arguments[0], i64.as_pointer())
        table = arguments[1]
        address = builder.load(builder.gep(base, [table]))
        capacity = builder.load(builder.gep(base, [builder.add(table, llvm.Constant(i64, CAPACITY))]))
        return cgutils.pack_array(builder, [address, capacity])

    return VIEW(types.int64, types.int64), generate


def kernel(function):
    """Compile a helper for int64 arguments only, linked into its callers.

    Numba would compile it again for each literal argument; widening literals before it looks keeps one
    version of each helper.
    """
    dispatcher = njit(nogil=True, error_model="numpy")(function)
    template_of = dispatcher.get_call_template

    def get_call_template(args, kws):
        return template_of(tuple(types.unliteral(a) for a in args), kws)

    dispatcher.get_call_template = get_call_template
    return dispatcher


QUICK: list[Callable[..., int]] = []
"""Functions that Python calls for what is known already; they keep the GIL."""
ENTRY_POINTS: list[Callable[..., int]] = []
"""Functions that Python calls for all else; they release the GIL. Arguments and results are int64."""


def quick(function):
    QUICK.append(function)
    return function


def entry_point(function):
    ENTRY_POINTS.append(function)
    return function
