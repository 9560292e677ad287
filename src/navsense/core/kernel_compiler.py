"""Numba compiler for kernels, which takes about half of the time of Numba's own.

Numba's compiler accepts all of its Python subset. Kernels are scalar loops over arrays, so `KernelCompiler` does less:

- It runs only the passes that kernels need.
- It looks up the types of operators on numbers once per process.
- It addresses the elements of arrays without a copy of the array structure.
- It keeps local variables in LLVM values instead of stack slots, where a variable is assigned once.
- It optimises and generates machine code only for kernels that Python calls. LLVM inserts the other kernels there.

The order of the arithmetic does not change. Other functions, and other versions of Numba, use Numba's passes.
"""

# mypy: disable-error-code="attr-defined,call-arg,misc,no-any-return,no-untyped-call"

from __future__ import annotations

import dis
import operator
from inspect import CO_GENERATOR
from types import CodeType
from typing import Any

import llvmlite.ir as llvm
import numba
from llvmlite import binding
from llvmlite.ir.instructions import ExtractValue, InsertValue
from numba import _dynfunc
from numba.core import types
from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs, dead_branch_prune
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder, _LowerResult
from numba.core.environment import lookup_environment
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.ir import UNDEFINED, Assign
from numba.core.lowering import Lower
from numba.core.postproc import PostProcessor
from numba.core.typed_passes import IRLegalization, NoPythonBackend, NopythonTypeInference, PreLowerStripPhis
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode
from numba.np.arrayobj import load_item, store_item

NUMBA_VERSIONS = ("0.66", "0.67", "0.68")
"""Versions of Numba with which `KernelCompiler` is tested."""

ARRAY_FIELDS = {"data": 4, "shape": 5, "strides": 6}
"""Positions in Numba's structure of an array."""

SCALARS = (types.Boolean, types.Float, types.Integer)

UNSUPPORTED_OPERATIONS = frozenset(("BEFORE_WITH", "LIST_APPEND", "MAKE_FUNCTION", "MAP_ADD", "SET_ADD"))
"""Bytecode operations that need other passes of Numba."""


def is_tested(version: str) -> bool:
    """Return True if the passes of this module suit a version of Numba."""
    return ".".join(version.split(".")[:2]) in NUMBA_VERSIONS


def needs_all_passes(code: CodeType) -> bool:
    """Return True for a function with closures, comprehensions, contexts or `yield`."""
    operations = {instruction.opname for instruction in dis.get_instructions(code)}
    return bool(code.co_flags & CO_GENERATOR) or bool(operations & UNSUPPORTED_OPERATIONS)


def extract_value(builder: Any, value: Any, *path: int) -> Any:
    """Return a member of a structure. If an instruction of this function inserted the member, return it directly."""
    while path:
        if isinstance(value, InsertValue):
            inserted = tuple(value.indices)
            common = min(len(inserted), len(path))
            if inserted[:common] != path[:common]:
                value = value.operands[0]
            elif common == len(inserted):
                value, path = value.operands[1], path[common:]
            else:
                break
        elif isinstance(value, ExtractValue):
            value, path = value.operands[0], (*value.indices, *path)
        else:
            break
    return builder.extract_value(value, path) if path else value


class KernelLower(Lower):
    """Writes the LLVM code of a kernel."""

    def _find_singly_assigned_variable(self) -> None:
        """Find the variables that need no stack slot.

        These are assigned once, and each use follows the assignment. If references are counted, all uses have to be in
        the block of the assignment, because Numba deletes a variable at the ends of several blocks.
        """
        blocks = self.func_ir.blocks
        blocks_of_assignments: dict[str, list[int]] = {}
        for label, block in blocks.items():
            for assignment in block.find_insts(Assign):
                blocks_of_assignments.setdefault(assignment.target.name, []).append(label)
        names = {name for name, labels in blocks_of_assignments.items() if len(labels) == 1}
        dominators = compute_cfg_from_blocks(blocks).dominators()
        for label, used_names in compute_use_defs(blocks).usemap.items():  # used before an assignment in this block
            for name in names & used_names:
                [assigned] = blocks_of_assignments[name]
                is_before = assigned < label and assigned in dominators[label]
                if self.context.enable_nrt or not is_before:
                    names.remove(name)
        self._singly_assigned_vars = names
        self._blk_local_varmap: dict[str, Any] = {}

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Store a value in a variable. Without reference counts, the earlier value is not read."""
        if self.context.enable_nrt or name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:
            self._alloca_var(name, self.typeof(name))
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Delete a variable. Without reference counts, there is nothing to do."""
        if self.context.enable_nrt:
            super().delvar(name)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """Return the value of a binary operation, without a second search for its signature."""
        signature = self.fndesc.calltypes[expr]
        operation = self.context.typing_context.resolve_value_type(op)
        is_static = expr.static_lhs is not UNDEFINED or expr.static_rhs is not UNDEFINED
        is_found = isinstance(operation, types.Function) and signature.args in operation._impl_keys  # noqa: SLF001
        if is_static or not is_found:
            return super().lower_binop(resty, expr, op)
        operands = [
            self.context.cast(self.builder, self.loadvar(operand.name), self.typeof(operand.name), argument_type)
            for operand, argument_type in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        value = self.context.get_function(operation, signature)(self.builder, operands)
        return self.context.cast(self.builder, value, signature.return_type, resty)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Return an element of an array."""
        pointer = self._find_element(value, index)
        if pointer is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        element = load_item(self.context, self.builder, self.typeof(value.name), pointer)
        return self.context.cast(self.builder, element, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Write an element of an array."""
        array_type, value_type = self.typeof(target_var.name), self.typeof(value_var.name)
        pointer = self._find_element(target_var, index_var) if isinstance(value_type, SCALARS) else None
        if pointer is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.context.cast(self.builder, self.loadvar(value_var.name), value_type, array_type.dtype)
        store_item(self.context, self.builder, array_type, value, pointer)
        return None

    def _find_element(self, array_variable: Any, index_variable: Any) -> Any:
        """Return the pointer to an element of an array of numbers; None if the index selects something else.

        As in Numba, a negative index counts from the end of the axis.
        """
        builder, array_type = self.builder, self.typeof(array_variable.name)
        if not isinstance(array_type, types.Array) or not isinstance(array_type.dtype, SCALARS):
            return None
        index_type, index = self.typeof(index_variable.name), self.loadvar(index_variable.name)
        index_types: tuple[Any, ...] = (index_type,)
        indices = [index]
        if isinstance(index_type, types.BaseTuple):
            index_types = tuple(index_type.types)
            indices = [extract_value(builder, index, axis) for axis in range(len(index_types))]
        if len(index_types) != array_type.ndim or not all(isinstance(kind, types.Integer) for kind in index_types):
            return None
        array = self.loadvar(array_variable.name)
        sizes, strides = (
            [extract_value(builder, array, ARRAY_FIELDS[name], axis) for axis in range(array_type.ndim)]
            for name in ("shape", "strides")
        )
        for axis, kind in enumerate(index_types):
            indices[axis] = self._resolve_index(kind, indices[axis], sizes[axis])
        data = extract_value(builder, array, ARRAY_FIELDS["data"])
        if array_type.layout == "C":
            position = indices[0]
            for size, number in zip(sizes[1:], indices[1:], strict=True):
                position = builder.add(builder.mul(position, size), number)
            return builder.gep(data, [position])
        offset = llvm.Constant(llvm.IntType(64), 0)
        for number, stride in zip(indices, strides, strict=True):
            offset = builder.add(offset, builder.mul(number, stride))
        first_byte = builder.bitcast(data, llvm.IntType(8).as_pointer())
        return builder.bitcast(builder.gep(first_byte, [offset]), data.type)

    def _resolve_index(self, index_type: Any, index: Any, size: Any) -> Any:
        """Return the index from the start of an axis."""
        if not index_type.signed:
            return self.context.cast(self.builder, index, index_type, types.uintp)
        index = self.context.cast(self.builder, index, index_type, types.intp)
        if isinstance(index, llvm.Constant) and isinstance(index.constant, int) and index.constant >= 0:
            return index
        is_negative = self.builder.icmp_signed("<", index, llvm.Constant(index.type, 0))
        return self.builder.select(is_negative, self.builder.add(index, size), index)


class KernelLibrary(JITCodeLibrary):
    """The LLVM code of a kernel, and its machine code if Python calls the kernel."""

    is_called_by_python = True

    def _optimize_functions(self, ll_module: Any) -> None:
        """Simplify the functions of a kernel that other kernels insert. Those of the others are optimised later."""
        if self.is_called_by_python:
            ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001  # as in Numba's method
        else:
            super()._optimize_functions(ll_module)

    def _optimize_final_module(self) -> None:
        """Optimise a kernel and the kernels that it calls.

        Numba's method optimises twice, because a pass between removes reference counts.
        """
        if self.is_called_by_python:
            manager, builder = self._codegen._module_pass_manager()  # noqa: SLF001  # as in Numba's method
            manager.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        """Generate the machine code."""
        if self.is_called_by_python:
            super()._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """Return the content of the library for the cache."""
        return super().serialize_using_object_code() if self.is_called_by_python else self.serialize_using_bitcode()


def make_library(context: Any, name: str, *, is_called_by_python: bool) -> KernelLibrary:
    """Return an empty library."""
    library = KernelLibrary(context.codegen(), name)
    library.enable_object_caching()
    library.is_called_by_python = is_called_by_python
    return library


def make_entry_point(function: PythonFunctionDescriptor, library: KernelLibrary, environment: Any) -> Any:
    """Return the entry point of a kernel that Python does not call. It identifies the kernel in Numba's tables."""
    return _dynfunc.make_function(function.lookup_module(), function.qualname, "", 0, environment, (library,))


def rebuild_specialisation(context: Any, library_state: tuple[str, str, Any], *state: Any) -> CompileResult:
    """Return a specialisation from the cache; the inverse of `CompileResult._reduce`."""
    name, kind, bitcode = library_state
    if kind != "bitcode":
        return CompileResult._rebuild(context, library_state, *state)  # noqa: SLF001  # as in Numba's cache
    function, environment, signature, is_object_mode, lifted, annotation, reload_functions, environments = state
    library = make_library(context, name, is_called_by_python=False)
    library._final_module = binding.parse_bitcode(bitcode)  # noqa: SLF001  # as in Numba's method
    library._finalize_final_module()  # noqa: SLF001
    return CompileResult(
        typing_context=context.typing_context,
        target_context=context,
        entry_point=make_entry_point(function, library, environment),
        typing_error=None,
        type_annotation=annotation,
        signature=signature,
        objectmode=is_object_mode,
        lifted=lifted,
        fndesc=function,
        library=library,
        call_helper=None,
        environment=environment,
        metadata=None,
        reload_init=reload_functions,
        referenced_envs=environments,
    )


class OperatorSignatures:
    """A typing context of Numba that looks up operators on numbers and elements of arrays once per process."""

    _signatures: dict[tuple[Any, ...], Any] = {}  # noqa: RUF012  # one for all kernels

    def __init__(self, context: Any) -> None:
        """`context` answers all other calls."""
        self._context = context

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the context."""
        return getattr(self._context, name)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a function for these argument types."""
        is_operator = type(func) is types.Function and all(isinstance(argument, SCALARS) for argument in args)
        if kws or not (is_operator or (func is operator.getitem and isinstance(args[0], types.Array))):
            return self._context.resolve_function_type(func, args, kws)
        key = func, *args
        if key not in self._signatures:
            self._signatures[key] = self._context.resolve_function_type(func, args, kws)
        return self._signatures[key]

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """Return the signature of `target[index] = value`."""
        if not isinstance(target, types.Array):
            return self._context.resolve_setitem(target, index, value)
        key = operator.setitem, target, index, value
        if key not in self._signatures:
            self._signatures[key] = self._context.resolve_setitem(target, index, value)
        return self._signatures[key]


class KernelTypeInference(NopythonTypeInference):
    """Finds the types of all variables."""

    def run_pass(self, state: Any) -> bool:
        """Run Numba's pass with the signatures of operators."""
        context = state.typingctx
        state.typingctx = OperatorSignatures(context)
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = context


def compile_to_library(state: Any) -> None:
    """Write the LLVM code of a kernel, and its machine code if Python calls the kernel. Numba's pass does the same."""
    context, flags = state.targetctx, state.flags
    library = make_library(context, state.func_id.func_qualname, is_called_by_python=not flags.no_cpython_wrapper)
    library._reload_init.update(state.reload_init)  # noqa: SLF001
    function = PythonFunctionDescriptor.from_specialized_function(
        state.func_ir,
        state.typemap,
        state.return_type,
        state.calltypes,
        mangler=context.mangler,
        inline=flags.forceinline,
        noalias=flags.noalias,
        abi_tags=[flags.get_mangle_string()],
    )
    with context.push_code_library(library):
        lower = KernelLower(context, library, function, state.func_ir, metadata=state.metadata)
        lower.lower()
        if library.is_called_by_python:
            lower.create_cpython_wrapper(flags.release_gil)
    if library.is_called_by_python:
        entry_point = context.get_executable(library, function, lower.env)
        for variable in library._final_module.global_variables:  # noqa: SLF001
            environment = lookup_environment(variable.name)
            if environment is not None:
                library.codegen.set_env(variable.name, environment)
    else:
        library.finalize()
        entry_point = make_entry_point(function, library, lower.env)
    context.insert_user_function(entry_point, function, [library])
    state.library = library
    state.reload_init.extend(library._reload_init)  # noqa: SLF001
    state.metadata.update(prune_stats=None, llvm_pass_timings=library.recorded_timings)
    state.type_annotation = ""
    state.cr = _LowerResult(function, lower.call_helper, cfunc=entry_point, env=lower.env)


class KernelPasses:
    """The passes from bytecode to machine code."""

    pipeline_name = "kernel"

    def __init__(self) -> None:
        """Numba stores the times of passes in `exec_times`."""
        self.exec_times: dict[str, Any] = {}

    def run(self, state: Any) -> None:
        """Compile a kernel."""
        pass_class: Any
        for pass_class in (TranslateByteCode, FixupArgs, IRProcessing):
            pass_class().run_pass(state)
        PostProcessor(state.func_ir).run()
        labels = set(state.func_ir.blocks)
        dead_branch_prune(state.func_ir, state.args)
        if set(state.func_ir.blocks) != labels:
            PostProcessor(state.func_ir).run()
        for pass_class in (GenericRewrites, ReconstructSSA):
            pass_class().run_pass(state)
        PostProcessor(state.func_ir).run()
        KernelTypeInference().run_pass(state)
        for pass_class in (PreLowerStripPhis, IRLegalization):
            pass_class().run_pass(state)
        compile_to_library(state)
        NoPythonBackend().run_pass(state)


class KernelCompiler(CompilerBase):
    """The compiler of kernels."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes. If they reject a kernel, Numba's passes compile it, or explain the error."""
        every_pass = DefaultPassBuilder.define_nopython_pipeline(self.state)
        flags = self.state.flags
        if (
            not is_tested(numba.__version__)
            or flags.debuginfo
            or flags.boundscheck
            or needs_all_passes(self.state.func_id.code)
        ):
            return [every_pass]
        return [KernelPasses(), every_pass]
