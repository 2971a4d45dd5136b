"""What trains networks: losses, optimizers, and a module with both that a trainer runs; derivatives of tensor functions by name."""

from . import loss, optimizer, setup_trainer, trainer, utils
from .append_loss import AppendLoss
from .setup_trainer import SetupTrainer
from .trainer import Trainer

__all__ = ["AppendLoss", "SetupTrainer", "Trainer", "loss", "optimizer", "setup_trainer", "trainer", "utils"]
