"""A model becomes a package: options as tvmc has them, and the build of graphs behind them."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ... import auto_scheduler, autotvm
from ...auto_scheduler.records import load_records
from ...errors import RecordError
from ...lower.context import PassContext
from ...lower.instruments import PassPrintingInstrument, PassTimingInstrument
from ...relax.expr import Call
from ...relax.runtime.c_export import check_c_name
from ...relax.runtime.executable import Executable
from ...relax.visitor import walk
from ...relay.backend import Executor, Runtime
from ...relay.backend.executor_factory import ExecutorFactoryModule
from ...relay.build_module import bound_graph
from ...relay.build_module import build as build_relay
from ...relay.expr import Function
from ...relay.from_graph import from_graph
from ...relay.text import module_text
from ...target import Target, TargetLike
from ...tir.function import IRModule
from ...tir.op_registry import Op
from ...tune.records.v02 import parse_v02
from .composite_target import partitioned
from .model import FORMATS, TVMCException, TVMCModel, TVMCPackage, check_folder
from .pass_config import parse_configs
from .pass_list import parse_pass_list_str
from .registry import generate_registry_args, reconstruct_registry_entity
from .shape_parser import parse_shape_string
from .target import generate_target_args, reconstruct_target_args, target_from_cli
from .transform import apply_graph_transforms, generate_transform_args, parse_graph_transform_args
from .workspace_pools import generate_workspace_pools_args, workspace_pools_recombobulate

_DUMPS = ("ll", "asm", "relay", "tir")


def tag_suffixes(mod: IRModule) -> IRModule:
    """The module: passes keep the names of values by themselves."""
    return mod


def _calls(functions: Iterable[Any]) -> dict[str, int]:
    calls = [node for func in functions for node in walk(func.body) if isinstance(node, Call) and isinstance(node.op, Op)]
    return dict(Counter(str(call.op).removeprefix("relax.") for call in calls))


def analyze_operations_distribution(mod: Any) -> dict[str, int]:
    """How often each operator is called in a module."""
    graph = bound_graph(mod, None)
    return _calls(func for func in graph.functions.values() if hasattr(func, "body") and hasattr(func, "params"))


def dump_operation_offloads(mod: Any, initial_mod: Any, dump_path: str) -> None:
    """Write which operators run where: in functions of code generators, or "generic", which is here; to the screen for "-".

    Args:
        mod: the module that is built.
        initial_mod: as it was imported, which is counted where nothing is of a code generator.
        dump_path: a file, or "-".
    """
    places: dict[str, list[Any]] = {}
    for func in mod.functions.values():
        places.setdefault(str((getattr(func, "attrs", None) or {}).get("Compiler", "generic")), []).append(func)
    if set(places) <= {"generic"}:
        counts = {"generic": analyze_operations_distribution(initial_mod if initial_mod is not None else mod)}
    else:
        counts = {place: _calls(found) for place, found in places.items()}
    lines = ["Total number of operators and distribution by targets", f"Total: {sum(sum(one.values()) for one in counts.values())}"]
    lines += [f"{place}: {sum(one.values())}" for place, one in counts.items()]
    lines += ["", *(f"{place} <- {name} x{count}" for place, one in counts.items() for name, count in sorted(one.items()))]
    if dump_path in ("-", ""):
        print("\n".join(lines))
    else:
        Path(dump_path).write_text("\n".join(lines) + "\n")


# Building


def add_tir_to_dumps(config: Any, dumps: dict[str, Any]) -> None:
    """Keep the tensor functions of an executable among dumps, as text."""
    functions = config.tensor_functions if isinstance(config, Executable) else {}
    dumps["tir"] = "\n\n".join(func.script(name=name) for name, func in functions.items())


def save_dumps(module_name: str, dumps: Mapping[str, str], dump_root: str = ".") -> None:
    """Write texts as `module_name.kind` in a folder."""
    for kind, text in dumps.items():
        Path(dump_root, f"{module_name}.{kind}").write_text(text)


def build(
    mod: Any, tvm_target: TargetLike, executor: Any = None, runtime: Any = None, params: Mapping[str, Any] | None = None,
    use_vm: bool = False, mod_name: str = "default", workspace_pools: Any = None,
) -> ExecutorFactoryModule | Executable:  # fmt: skip
    """What a module becomes: see `relay.build`. With `use_vm` the executable in it: a network that has no calls as JSON."""
    if workspace_pools:
        raise TVMCException("workspace pools: the memory of a network is one arena, which it takes by itself")
    made = build_relay(mod, tvm_target, executor=executor, runtime=runtime, params=dict(params or {}), mod_name=mod_name)
    return made.module if use_vm else made


def _records(path: str | os.PathLike[str]) -> Any:
    """The context in which a build finds the programs of a log: of the auto-scheduler, or of AutoTVM's tuners.

    Raises:
        TVMCException: for a log that isn't there, or is neither.
    """
    if not os.path.exists(path):
        raise TVMCException(f"{path}: there are no such tuning records; tvmc.tune writes some")
    try:
        with open(path, encoding="utf-8") as log:
            parse_v02(next((line.strip() for line in log if line.strip()), ""))
        return autotvm.apply_history_best(os.fspath(path))
    except (RecordError, UnicodeDecodeError):
        pass  # none of AutoTVM's
    except OSError as error:
        raise TVMCException(f"{path}: the tuning records can't be read: {error.strerror or error}") from None
    try:
        found = load_records(os.fspath(path), repeats=True)
    except RecordError as error:
        raise TVMCException(f"{path}: kernels of networks follow records of the auto-scheduler or of AutoTVM: {error}") from None
    if not found and os.path.getsize(path):
        raise TVMCException(
            f"{path} holds no records of the auto-scheduler or of AutoTVM, which kernels follow: `tensorexpr tune` writes some"
        )
    return auto_scheduler.ApplyHistoryBest(found)


def _check_followed(path: str | os.PathLike[str], known: Any, built: Executable) -> None:
    """Refuse records none of which is of the network that was built. A log without any is of one whose kernels by rules are the fastest.

    Raises:
        TVMCException: for these; it says what would fit.
    """
    origins = getattr(built, "origins", {})
    count, some = len(known), ", ".join([*list(origins)[:3], *(["..."] if len(origins) > 3 else [])])
    if count and origins and "record" not in origins.values():
        raise TVMCException(
            f"{path}: of its {count} workloads none is a kernel of this network ({some}); "
            "were they tuned for it, with these --input-shapes, this --target and precision? `tensorexpr tune` writes those of this one, "
            "and without --tuning-records kernels follow rules"
        )


def _names(given: Any) -> list[str]:
    """Words with commas between, which may stand in brackets, or a list of them."""
    return [word.strip() for word in given.strip("[]").split(",") if word.strip()] if isinstance(given, str) else list(given or ())


def compile_model(
    tvmc_model: TVMCModel, target: TargetLike, opt_level: int = 3, executor: Any = None, runtime: Any = None,
    tuning_records: str | os.PathLike[str] | None = None, package_path: str | os.PathLike[str] | None = None, cross: Any = None,
    cross_options: str | None = None, output_format: str = "so", dump_code: Any = None, dump_offloads: str = "",
    target_host: TargetLike | None = None, disabled_pass: Any = None, pass_context_configs: Sequence[str] | None = None,
    additional_target_options: Mapping[str, Mapping[str, Any]] | None = None, use_vm: bool = False, mod_name: str | None = "default",
    workspace_pools: Any = None, print_pass_times: bool = False, print_ir_before: Any = None, print_ir_after: Any = None,
    instruments: Sequence[Any] | None = None, desired_layout: str | None = None, desired_layout_ops: Sequence[str] | None = None,
    mixed_precision: bool = False, mixed_precision_ops: Sequence[str] | None = None, mixed_precision_calculation_type: str | None = None,
    mixed_precision_acc_type: str | None = None,
) -> TVMCPackage:  # fmt: skip
    """Compile a model to a package.

    Args:
        tvmc_model: of `load`.
        target: what for, such as "llvm"; see `target.target_from_cli`, also for code generators of others.
        opt_level: of the PassContext, 0 to 3.
        executor, runtime: `relay.backend.Executor` and `Runtime`, or their names; there is one of each.
        tuning_records: what `tune` wrote; kernels without records get their schedules by rules.
        package_path: the file to write, `x.tar` or `x.so`, for C programs `x.so`, `x.o` or, of target c, `x.c`; by default in a folder
            for temporary files.
        cross, cross_options: another compiler that links, and words for it.
        output_format: "so", or "c" for C programs; see `TVMCModel.export_package`.
        dump_code: kinds of code, with commas between, that are written beside the package: ll, asm, relay, tir.
        dump_offloads: a file for where operators run; "-" for the screen.
        target_host: its host.
        disabled_pass: names of passes, with commas between or as a list.
        pass_context_configs: `["name=value"]`.
        additional_target_options: options of the target by its kind.
        use_vm: accepted.
        mod_name: how the library calls the network.
        workspace_pools: none.
        print_pass_times, print_ir_before, print_ir_after, instruments: what watches the passes.
        desired_layout, desired_layout_ops, mixed_precision, mixed_precision_ops, mixed_precision_calculation_type,
            mixed_precision_acc_type: see `transform.apply_graph_transforms`.

    Raises:
        TVMCException: for options that don't fit.
        TargetError, DeclarationError, LoweringError, CodegenError: of the build.
    """
    kinds = _names(dump_code)
    disabled = parse_pass_list_str(disabled_pass) if isinstance(disabled_pass, str) else list(disabled_pass or ())
    wrong = [kind for kind in kinds if kind not in _DUMPS]
    if wrong:
        raise TVMCException(f"--dump-code {wrong[0]}: there are {', '.join(_DUMPS)}")
    if not 0 <= opt_level <= 3:
        raise TVMCException(f"--opt-level is 0 to 3, not {opt_level}")
    chosen, generators = target_from_cli(target, additional_target_options)
    chosen = Target(chosen, target_host) if target_host is not None else chosen
    if output_format == "c":  # before the build, which takes its time
        check_c_name(package_path or tvmc_model.default_package_path(), target=chosen)
    mod = apply_graph_transforms(tvmc_model.mod, parse_graph_transform_args(locals()))
    timing = PassTimingInstrument()
    watching = [*(instruments or ()), *([timing] if print_pass_times else [])]
    if print_ir_before or print_ir_after:
        watching.append(PassPrintingInstrument(_names(print_ir_before), _names(print_ir_after)))
    config = parse_configs(pass_context_configs)
    with ExitStack() as stack:
        stack.enter_context(PassContext(opt_level, disabled_pass=disabled, config=config, instruments=watching))
        if tuning_records is not None:
            known = stack.enter_context(_records(tuning_records))
        mod = partitioned(mod, tvmc_model.params, generators, mod_name or "default")
        built = build(mod, chosen, executor, runtime, tvmc_model.params, use_vm, mod_name or "default", workspace_pools)
        if tuning_records is not None:
            _check_followed(tuning_records, known, built.module)
        if print_pass_times:
            print(timing.render())
    if dump_offloads:
        dump_operation_offloads(mod, tvmc_model.mod, dump_offloads)
    path = Path(tvmc_model.export_package(built, package_path, cross, cross_options, output_format))
    if kinds:
        save_dumps(path.name, _dumps(kinds, mod, built.module), str(path.parent))
    return TVMCPackage(path)


def _dumps(kinds: Sequence[str], mod: IRModule, executable: Executable) -> dict[str, str]:
    dumps: dict[str, str] = {}
    for kind in kinds:
        if kind == "tir":
            add_tir_to_dumps(executable, dumps)
        elif kind == "relay":
            dumps[kind] = module_text(mod if isinstance(mod["main"], Function) else from_graph(mod))
        else:
            dumps[kind] = "" if executable.kernels is None else executable.kernels.get_source(kind)
    return dumps


# The command's options


def add_model_args(parser: argparse.ArgumentParser) -> None:
    """What names a model: FILE, --model-format, --input-shapes."""
    parser.add_argument("FILE", help="the model: .onnx, .pt2, .relay, or what TVMCModel.save wrote")
    parser.add_argument("--model-format", metavar="FORMAT", help="of the file; by default by its ending")
    parser.add_argument("--input-shapes", type=parse_shape_string, metavar="SHAPES", help='such as "data:[1,3,224,224] mask:[1,?]"')


def add_compile_parser(subparsers: Any, _: Any = None, json_params: Any = None) -> argparse.ArgumentParser:
    """The subcommand `compile`."""
    parser: argparse.ArgumentParser = subparsers.add_parser("compile", help="compile a model to a package")
    add_model_args(parser)
    parser.add_argument("-o", "--output", default="module.tar", help="the package: x.tar, or x.so for the library alone; module.tar")
    parser.add_argument(
        "-f", "--output-format", default="so", choices=FORMATS, help="so, or c: x.so, x.o or (of --target c) x.c for C programs"
    )
    parser.add_argument("-O", "--opt-level", type=int, default=3, choices=range(4), metavar="0..3", help="of the PassContext")
    parser.add_argument("--tuning-records", metavar="FILE", help="what tune wrote")
    parser.add_argument("--cross-compiler", help="a compiler that links instead of the system's")
    parser.add_argument("--cross-compiler-options", metavar="WORDS", help="words for it")
    parser.add_argument("--dump-code", metavar="KINDS", help=f"write code beside the package: {','.join(_DUMPS)}")
    parser.add_argument("--dump-offloads", default="", metavar="FILE", help="where operators run; - for the screen")
    parser.add_argument("--pass-config", action="append", metavar="NAME=VALUE", help="an option of the PassContext")
    parser.add_argument("--disabled-pass", metavar="NAMES", help="passes that are left out, with commas between")
    parser.add_argument("--module-name", default="default", help="how the library calls the network")
    parser.add_argument("--print-pass-times", action="store_true", help="what each pass took")
    parser.add_argument("--print-ir-before", metavar="NAMES", help="print the module before these passes")
    parser.add_argument("--print-ir-after", metavar="NAMES", help="print the module after these passes")
    parser.add_argument("--target-host", help="the target's host")
    generate_target_args(parser)
    generate_registry_args(parser, Executor, "graph")
    generate_registry_args(parser, Runtime, "cpp")
    generate_transform_args(parser)
    generate_workspace_pools_args(parser)
    parser.set_defaults(func=drive_compile)
    return parser


def drive_compile(args: argparse.Namespace) -> int:
    """Run the subcommand `compile`; returns the exit code."""
    from .frontends import load_model

    check_folder(args.output)
    model = load_model(args.FILE, args.model_format, args.input_shapes)
    package = compile_model(
        model, args.target, args.opt_level, reconstruct_registry_entity(args, Executor), reconstruct_registry_entity(args, Runtime),
        tuning_records=args.tuning_records, package_path=args.output, cross=args.cross_compiler, cross_options=args.cross_compiler_options,
        output_format=args.output_format, dump_code=args.dump_code, dump_offloads=args.dump_offloads, target_host=args.target_host,
        disabled_pass=args.disabled_pass, pass_context_configs=args.pass_config, additional_target_options=reconstruct_target_args(args),
        mod_name=args.module_name, workspace_pools=workspace_pools_recombobulate(args, []), print_pass_times=args.print_pass_times,
        print_ir_before=args.print_ir_before, print_ir_after=args.print_ir_after, **parse_graph_transform_args(args),
    )  # fmt: skip
    print(f"{package.package_path}: {os.path.getsize(package.package_path):,} bytes")
    return 0
