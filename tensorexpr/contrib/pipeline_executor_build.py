"""What builds several networks as a pipeline, where programs look for it; see `relay.pipeline_config` and `relay.pipelines`."""

from ..later import later

_NAMES = "PipelineExecutorFactoryModule build pipeline_executor_build_enabled=pipeline_executor_enabled"
__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.pipeline_config": "PipelineConfig", "tensorexpr.relay.pipelines": _NAMES})
