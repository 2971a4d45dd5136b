"""A model becomes a package: options as tvmc has them, and the build of graphs behind them."""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ... import auto_scheduler, autotvm
from ...errors import RecordError
from ...lower.context import PassContext
from ...lower.instruments import PassPrintingInstrument, PassTimingInstrument
from ...relax import transform as on_graphs
from ...relax.expr import Call
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
from .model import FORMATS, TVMCException, TVMCModel, TVMCPackage, check_folder

_DUMPS = ("ll", "asm", "relay", "tir")
TransformArgs = Mapping[str, Any] | None


# Options as texts


def parse_shape_string(inputs_string: str) -> dict[str, list[int]]:
    """`"data:[1,3,224,224] mask:[1,?]"` as shapes by name; -1 stands for an extent that isn't known.

    Raises:
        TVMCException: for another text.
    """
    item = r"\s*(?P<name>'[^']+'|\"[^\"]+\"|[^\s:\[\],'\"]+)\s*:\s*\[(?P<shape>[^\]]*)\]\s*,?"
    found: dict[str, list[int]] = {}
    place = 0
    while place < len(inputs_string):
        match = re.compile(item).match(inputs_string, place)
        words = [word.strip() for word in match["shape"].split(",") if word.strip()] if match else []
        if match is None or not all(re.fullmatch(r"-?\d+|\?", word) for word in words):
            raise TVMCException(f'--input-shapes "{inputs_string}": expected "name:[1,3,224,224] other:[1,?]"')
        found[match["name"].strip("'\"")] = [-1 if word == "?" else int(word) for word in words]
        place = match.end()
    return found


def parse_pass_list_str(input_string: str) -> list[str]:
    """Names of passes with commas between."""
    return [name.strip() for name in input_string.split(",") if name.strip()]


def parse_configs(input_configs: Sequence[str] | None) -> dict[str, Any]:
    """`["tir.disable_vectorize=true"]` as options of a PassContext, which checks their names.

    Raises:
        TVMCException: for one without a value.
    """
    found: dict[str, Any] = {}
    words = {"true": True, "false": False}
    for one in input_configs or ():
        key, sign, text = one.partition("=")
        if not sign or not key:
            raise TVMCException(f"--pass-config {one}: expected name=value, such as tir.disable_vectorize=true")
        found[key.strip()] = words.get(text.lower(), int(text) if re.fullmatch(r"-?\d+", text) else text)
    return found


def target_from_cli(
    target: TargetLike, additional_target_options: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[Target, list[Any]]:
    """The target of an option, and targets of code generators that it names besides: none.

    Args:
        target: a text, such as "llvm -mcpu=skylake-avx512".
        additional_target_options: {"llvm": {"mcpu": "core-avx2"}}.

    Raises:
        TargetError: for a target, or an option of it, that there isn't.
        TVMCException: for options of another kind of target, or several targets.
    """
    if isinstance(target, str) and "," in re.sub(r"=\S*", "", target):
        raise TVMCException(f"--target {target!r} names several targets, and there are no external code generators: name one")
    text = str(target) if isinstance(target, str) else None
    for kind, options in (additional_target_options or {}).items():
        given = {key: value for key, value in options.items() if value is not None}
        if given and (text is None or text.split(" ")[0] != kind):
            raise TVMCException(f"options of {kind} ({', '.join(given)}) don't fit the target {target}")
        text = " ".join([text or "", *(f"-{key.replace('_', '-')}={value}" for key, value in given.items())]) if given else text
    return Target(text if text is not None else target), []


def tag_suffixes(mod: IRModule) -> IRModule:
    """The module: passes keep the names of values by themselves."""
    return mod


# Graphs


def parse_graph_transform_args(args: Any) -> dict[str, Any]:
    """The options of graphs among those of a command or function."""
    given = args if isinstance(args, Mapping) else vars(args)
    names = ("desired_layout", "desired_layout_ops", "mixed_precision", "mixed_precision_ops",
             "mixed_precision_calculation_type", "mixed_precision_acc_type")  # fmt: skip
    return {name: given[name] for name in names if given.get(name) is not None}


def apply_graph_transforms(mod: Any, args: TransformArgs) -> Any:
    """A module of graphs in another layout or precision.

    Args:
        mod: the module; without options it comes back as it is.
        args: of `parse_graph_transform_args`: desired_layout "NHWC", desired_layout_ops ["nn.conv2d"], mixed_precision, and its
            calculation type "float16" or "bfloat16" and sum type.

    Raises:
        TVMCException: for operators that mixed precision is to be limited to.
        DeclarationError: of the passes.
    """
    given = dict(args or {})
    layout, mixed = given.get("desired_layout"), given.get("mixed_precision")
    if not layout and not mixed:
        return mod
    made: Any = on_graphs.ConvertToDataflow(1)(on_graphs.Normalize()(bound_graph(mod, None)))
    if layout:
        names = given.get("desired_layout_ops") or ["nn.conv2d"]
        made = on_graphs.ConvertLayout({f"relax.{name.removeprefix('relax.')}": [layout, "default"] for name in names})(made)
    if mixed:
        if given.get("mixed_precision_ops"):
            raise TVMCException("--mixed-precision-ops: products and convolutions are computed in half precision, and can't be chosen")
        kind = given.get("mixed_precision_calculation_type") or "float16"
        sums = given.get("mixed_precision_acc_type") or "float32"
        made = on_graphs.ToMixedPrecision(sums, dtype=kind)(made)
    return made


def analyze_operations_distribution(mod: Any) -> dict[str, int]:
    """How often each operator is called in a module."""
    graph = bound_graph(mod, None)
    bodies = [func.body for func in graph.functions.values() if hasattr(func, "body") and hasattr(func, "params")]
    calls = [node for body in bodies for node in walk(body) if isinstance(node, Call) and isinstance(node.op, Op)]
    return dict(Counter(str(call.op).removeprefix("relax.") for call in calls))


def dump_operation_offloads(mod: Any, initial_mod: Any, dump_path: str) -> None:
    """Write which operators run where: all are "generic", as there are no external code generators; to the screen for "-".

    Args:
        mod: the module.
        initial_mod: as it was imported, which is what is counted.
        dump_path: a file, or "-".
    """
    counts = analyze_operations_distribution(initial_mod if initial_mod is not None else mod)
    lines = [
        "Total number of operators and distribution by targets",
        f"Total: {sum(counts.values())}",
        f"generic: {sum(counts.values())}",
        "",
    ]
    lines += [f"generic <- {name} x{count}" for name, count in sorted(counts.items())]
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
) -> ExecutorFactoryModule:  # fmt: skip
    """What a module becomes: see `relay.build`. With `use_vm` it is the same, as all networks run in one machine."""
    if workspace_pools:
        raise TVMCException("workspace pools: the memory of a network is one arena, which it takes by itself")
    return build_relay(mod, tvm_target, executor=executor, runtime=runtime, params=dict(params or {}), mod_name=mod_name)


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
    try:
        return auto_scheduler.ApplyHistoryBest(os.fspath(path))
    except RecordError as error:
        raise TVMCException(f"{path}: kernels of networks follow records of the auto-scheduler or of AutoTVM: {error}") from None


def _check_followed(path: str | os.PathLike[str], known: Any, built: Executable) -> None:
    """Refuse records none of which is of the network that was built. A log without any is of one whose kernels by rules are the fastest.

    Raises:
        TVMCException: for these; it says what would fit.
    """
    origins = getattr(built, "origins", {})
    count = len(known)
    if count and origins and "record" not in origins.values():
        raise TVMCException(
            f"{path}: none of its {count} workloads is a kernel of this network, such as {', '.join(list(origins)[:3])}: they are of "
            "another network, other shapes (--input-shapes), another precision or another target; tensorexpr tune writes those of this one"
        )


def _names(given: Any) -> list[str]:
    return parse_pass_list_str(given) if isinstance(given, str) else list(given or ())


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
        target: what for, such as "llvm".
        opt_level: of the PassContext, 0 to 3.
        executor, runtime: `relay.backend.Executor` and `Runtime`, or their names; there is one of each.
        tuning_records: what `tune` wrote; kernels without records get their schedules by rules.
        package_path: the file to write, `x.tar` or `x.so`; by default in a folder for temporary files.
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
            mixed_precision_acc_type: see `apply_graph_transforms`.

    Raises:
        TVMCException: for options that don't fit.
        TargetError, DeclarationError, LoweringError, CodegenError: of the build.
    """
    kinds = _names(dump_code)
    wrong = [kind for kind in kinds if kind not in _DUMPS]
    if wrong:
        raise TVMCException(f"--dump-code {wrong[0]}: there are {', '.join(_DUMPS)}")
    if not 0 <= opt_level <= 3:
        raise TVMCException(f"--opt-level is 0 to 3, not {opt_level}")
    chosen, _ = target_from_cli(target, additional_target_options)
    chosen = Target(chosen, target_host) if target_host is not None else chosen
    mod = apply_graph_transforms(tvmc_model.mod, parse_graph_transform_args(locals()))
    timing = PassTimingInstrument()
    watching = [*(instruments or ()), *([timing] if print_pass_times else [])]
    if print_ir_before or print_ir_after:
        watching.append(PassPrintingInstrument(_names(print_ir_before), _names(print_ir_after)))
    config = parse_configs(pass_context_configs)
    with ExitStack() as stack:
        stack.enter_context(PassContext(opt_level, disabled_pass=_names(disabled_pass), config=config, instruments=watching))
        if tuning_records is not None:
            known = stack.enter_context(_records(tuning_records))
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


def generate_target_args(parser: argparse.ArgumentParser) -> None:
    """--target, and an option for each attribute of a CPU's target."""
    parser.add_argument("--target", default="llvm", help='what for: "llvm" (this machine, the default), "llvm -mcpu=core-avx2"')
    for name in _TARGET_ATTRS:
        parser.add_argument(f"--target-llvm-{name}", help=f"{name} of the target")


_TARGET_ATTRS = ("mcpu", "mattr", "mtriple", "num-cores")


def reconstruct_target_args(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The target's attributes among options, by its kind."""
    found = {name: getattr(args, f"target_llvm_{name.replace('-', '_')}", None) for name in _TARGET_ATTRS}
    given = {name: value for name, value in found.items() if value is not None}
    return {"llvm": given} if given else {}


def generate_registry_args(parser: argparse.ArgumentParser, registry: Any, default: str | None = None) -> None:
    """An option for the executor or the runtime: `--executor graph`."""
    name = registry.__name__.lower()
    parser.add_argument(f"--{name}", default=default, choices=registry.list_registered(), help=f"the {name}; there is one, by these names")


def reconstruct_registry_entity(args: argparse.Namespace, registry: Any) -> Any:
    """The executor or runtime of an option."""
    name = getattr(args, registry.__name__.lower(), None)
    return None if name is None else registry(name)


def generate_transform_args(parser: argparse.ArgumentParser) -> None:
    """--desired-layout and --mixed-precision, with what they are about."""
    parser.add_argument("--desired-layout", choices=["NCHW", "NHWC"], help="the layout of convolutions")
    parser.add_argument("--desired-layout-ops", nargs="+", metavar="OP", help="which operators it is for; by default nn.conv2d")
    parser.add_argument("--mixed-precision", action="store_true", help="products and convolutions in half precision")
    parser.add_argument("--mixed-precision-ops", nargs="+", metavar="OP", help="refused: all of them are")
    parser.add_argument("--mixed-precision-calculation-type", choices=["float16", "bfloat16"], help="half precision; by default float16")
    parser.add_argument("--mixed-precision-acc-type", choices=["float16", "bfloat16", "float32"], help="of sums; by default float32")


def generate_workspace_pools_args(parser: argparse.ArgumentParser) -> None:
    """--workspace-pools, which is refused."""
    parser.add_argument("--workspace-pools", help="refused: a network has one arena")


def workspace_pools_recombobulate(parsed: argparse.Namespace, targets: Sequence[Any], extra_target: Any = None) -> Any:
    """The pools of an option: what it says, which `build` refuses."""
    return getattr(parsed, "workspace_pools", None)


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
    parser.add_argument("-f", "--output-format", default="so", choices=FORMATS, help="so, or c: x.so or x.o for C programs")
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
        mod_name=args.module_name, workspace_pools=args.workspace_pools, print_pass_times=args.print_pass_times,
        print_ir_before=args.print_ir_before, print_ir_after=args.print_ir_after, **parse_graph_transform_args(args),
    )  # fmt: skip
    print(f"{package.package_path}: {os.path.getsize(package.package_path):,} bytes")
    return 0
