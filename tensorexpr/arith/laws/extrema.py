"""Laws of minima; those of maxima are their mirror images."""

# Applied as they stand to min, and with min and max exchanged to max.
MIN = """
min(x, x) -> x
~ min(x, max(x, y)) -> x
~ min(min(x, y), x) -> min(x, y)
~ min(max(x, y), min(x, y)) -> min(x, y)
~ min(max(x, y), max(x, z)) -> max(min(y, z), x)
~ min(min(x, y), min(x, z)) -> min(min(y, z), x)
min(min(min(x, y), z), y) -> min(min(x, y), z)
min(min(min(min(x, y), z), w), y) -> min(min(min(x, y), z), w)
~ min(x + y, x + z) -> min(y, z) + x
min(x - y, x - z) -> x - max(y, z)
min(y - x, z - x) -> min(y, z) - x
min(x*c1, y*c1) -> min(x, y)*c1 if c1 > 0
min(x*c1, y*c1) -> max(x, y)*c1 if c1 < 0
min(c1 - x, c2) -> c1 - max(x, c1 - c2) if c2 != 0
min(c1 - x, c2 - x) -> min(c1, c2) - x
min(x + c1, x + c2) -> x + min(c1, c2)
min(x + c1, x) -> x + min(c1, 0)
min(x, x + c1) -> x + min(c1, 0)
min(c1 - x, c2 - x) -> min(c1, c2) - x
min(c1, x) -> min(x, c1)
min(min(x, c1), c2) -> min(x, min(c1, c2))
min(min(x, c1), y) -> min(min(x, y), c1)
min(x*c1, c2) -> min(x, c2 // c1)*c1 if c1 > 0 and c2 % c1 == 0
min(x*c1, c2) -> max(x, c2 // c1)*c1 if c1 < 0 and c2 % c1 == 0
min(x // c1, y // c1) -> min(x, y) // c1 if c1 > 0
min(x // c1, y // c1) -> max(x, y) // c1 if c1 < 0
min(tdiv(x, c1), tdiv(y, c1)) -> tdiv(min(x, y), c1) if c1 > 0
min(tdiv(x, c1), tdiv(y, c1)) -> tdiv(max(x, y), c1) if c1 < 0
"""

# Where the two differ: rounding a quotient down and multiplying back never gives more.
MIN_ONLY = """
min(x, y) -> x if prove(x <= y)
min(x, y) -> y if prove(y <= x)
~ min((x // c1)*c1, x) -> (x // c1)*c1 if c1 > 0
~ min(((x + c2) // c1)*c1, x) -> x if c1 > 0 and c2 + 1 == c1
~ min(((x + c2) // c1)*c1 + c3, x) -> x if c1 > 0 and c2 + c3 + 1 >= c1
~ min((x // c1)*c1 + c2, x) -> x if c1 > 0 and c2 + 1 >= c1
~ min((x // c1)*c1 + c2, x) -> (x // c1)*c1 + c2 if c1 > 0 and c2 <= 0
~ min(((x + c2) // c1)*c1, max(x, c3)) -> max(x, c3) if c1 > 0 and c2 + 1 == c1 and c2 < c1 and prove(x > 0) and c3 <= c1
~ min(tdiv(x + c1, c2)*c2, x) -> x if c2 > 0 and c1 + 1 == c2
~ min(tdiv(x + c1, c2)*c2, max(x, c2)) -> max(x, c2) if c2 > 0 and c1 + 1 == c2 and prove(x > 0)
"""

MAX_ONLY = """
max(x, y) -> x if prove(x >= y)
max(x, y) -> y if prove(y >= x)
~ max((x // c1)*c1, x) -> x if c1 > 0
~ max(((x + c2) // c1)*c1, x) -> ((x + c2) // c1)*c1 if c1 > 0 and c2 + 1 == c1
~ max(((x + c2) // c1)*c1 + c3, x) -> ((x + c2) // c1)*c1 + c3 if c1 > 0 and c2 + c3 + 1 >= c1
~ max((x // c1)*c1 + c2, x) -> (x // c1)*c1 + c2 if c1 > 0 and c2 + 1 >= c1
~ max((x // c1)*c1 + c2, x) -> x if c1 > 0 and c2 <= 0
~ max(tdiv(x + c1, c2)*c2, x) -> tdiv(x + c1, c2)*c2 if c2 > 0 and c1 + 1 == c2
"""


def mirrored(text: str) -> str:
    """A table with min and max exchanged."""
    # By way of a character that no law has, or all would end as max.
    return text.replace("min(", "\0").replace("max(", "min(").replace("\0", "max(")
