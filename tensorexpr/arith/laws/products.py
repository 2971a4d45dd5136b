"""Laws of products of indices."""

MUL = """
c1 * x -> x * c1
(x + c1) * c2 -> x*c2 + c1*c2
(x * c1) * c2 -> x * (c1*c2)
~ min(x, y) * max(x, y) -> x * y
(x - y) * c1 -> (y - x) * (-c1) if c1 < 0
tdiv(x - tmod(x, y), y) * y -> x - tmod(x, y)
"""
