"""Shapes of inputs as a text of the command line."""

from __future__ import annotations

import argparse
import re

from .model import TVMCException


class ShapeError(TVMCException, argparse.ArgumentTypeError):
    """A text that states no shapes; options of a parser report it as their own."""


def parse_shape_string(inputs_string: str) -> dict[str, list[int]]:
    """`"data:[1,3,224,224] mask:[1,?]"` as shapes by name; -1 stands for an extent that isn't known.

    Raises:
        ShapeError: for another text.
    """
    # Names of TensorFlow's end with a colon and a number: x:0:[1,3]
    item = r"\s*(?P<name>'[^']+'|\"[^\"]+\"|[^\s\[\],'\"]+?)\s*:\s*\[(?P<shape>[^\]]*)\]\s*,?"
    found: dict[str, list[int]] = {}
    place = 0
    while place < len(inputs_string):
        match = re.compile(item).match(inputs_string, place)
        words = [word.strip() for word in match["shape"].split(",") if word.strip()] if match else []
        if match is None or not all(re.fullmatch(r"-?\d+|\?", word) for word in words):
            raise ShapeError(f'expected "name:[1,3,224,224] other:[1,?]", not "{inputs_string}"')
        found[match["name"].strip("'\"")] = [-1 if word == "?" else int(word) for word in words]
        place = match.end()
    return found
