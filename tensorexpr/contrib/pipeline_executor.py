"""What runs several networks as a pipeline, where programs look for it; see `relay.pipelines`."""

from ..later import later

_NAMES = "PipelineExecutorFactoryModule PipelineModule pipeline_executor_enabled"
__getattr__, __dir__ = later(__name__, {"tensorexpr.relay.pipelines": _NAMES})
