"""Loggers of tasks: a file for each, by the names that TVM's programs use. No handler is installed unless one of these is called."""

from __future__ import annotations

import logging
import logging.config
from collections.abc import Callable, Sequence
from logging import Logger
from pathlib import Path
from typing import Any

_FORMAT = "%(asctime)s [%(levelname)s] %(message)s"


def get_logger(name: str) -> Logger:
    """The logger of a name."""
    return logging.getLogger(name)


def get_logging_func(logger: Logger) -> Callable[[int, str, int, str], None] | None:
    """A function of (level, file, line, message) that writes to a logger; None if there is none."""
    if logger is None:
        return None

    def write(level: int, filename: str, lineno: int, msg: str) -> None:
        logger.log(level if level >= logging.DEBUG else logging.INFO, "[%s:%d] %s", Path(filename).name, lineno, msg)

    return write


def create_loggers(
    log_dir: str,
    params: Sequence[dict[str, Any]],
    logger_config: dict[str, Any] | None = None,
    disable_existing_loggers: bool = False,
) -> None:
    """Let loggers write to files.

    Args:
        log_dir: where the files are; it is made.
        params: for each logger what to fill the words {logger_name}, {log_dir}, ... of the configuration with.
        logger_config: `logging.config.dictConfig`'s mapping, in which such words may stand; a file for each logger if None.
        disable_existing_loggers: silence those that are there.
    """
    Path(log_dir).mkdir(parents=True, exist_ok=True)
    merged: dict[str, Any] = {
        "version": 1,
        "disable_existing_loggers": disable_existing_loggers,
        "loggers": {},
        "handlers": {},
        "formatters": {},
    }
    for words in params:
        given = {"log_dir": log_dir, **words}
        for part, entries in _filled(logger_config or _FILES, given).items():
            if isinstance(merged.get(part), dict):
                merged[part].update(entries)
    logging.config.dictConfig(merged)


_FILES: dict[str, Any] = {
    "loggers": {"{logger_name}": {"level": "DEBUG", "handlers": ["{logger_name}.file"], "propagate": False}},
    "handlers": {
        "{logger_name}.file": {
            "class": "logging.FileHandler",
            "filename": "{log_dir}/{logger_name}.log",
            "mode": "a",
            "level": "DEBUG",
            "formatter": "meta_schedule",
        }
    },
    "formatters": {"meta_schedule": {"format": _FORMAT}},
}


def _filled(value: Any, words: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {_filled(key, words): _filled(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, words) for item in value]
    if not isinstance(value, str):
        return value
    for name, word in words.items():
        value = value.replace(f"{{{name}}}", str(word))
    return value


def get_loggers_from_work_dir(work_dir: str, task_names: Sequence[str]) -> list[Logger]:
    """A logger for each task, which writes to a file of its own in `work_dir`/logs."""
    numbers = [f"{__name__}.task_{number:0{len(str(len(task_names)))}d}_{name}" for number, name in enumerate(task_names)]
    create_loggers(str(Path(work_dir) / "logs"), [{"logger_name": name} for name in numbers])
    return [get_logger(name) for name in numbers]
