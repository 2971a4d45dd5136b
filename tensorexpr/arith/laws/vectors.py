"""Laws of ramps and broadcasts, which hold for any integers however wide: they rewrite lane by lane."""

ADD = """
select(x, y, z) + select(x, w, v) -> select(x, y + w, z + v)
ramp(x, y, n) + ramp(z, w, n) -> ramp(x + z, y + w, n)
ramp(x, y, n) + broadcast(z, n) -> ramp(x + z, y, n)
broadcast(z, n) + ramp(x, y, n) -> ramp(z + x, y, n)
broadcast(x, n) + broadcast(y, n) -> broadcast(x + y, n)
(x + broadcast(y, n)) + broadcast(z, n) -> x + broadcast(y + z, n)
(x + ramp(y, z, n)) + broadcast(w, n) -> x + ramp(y + w, z, n)
(x + broadcast(w, n)) + ramp(y, z, n) -> x + ramp(w + y, z, n)
"""

SUB = """
select(x, y, z) - select(x, w, v) -> select(x, y - w, z - v)
select(x, y, z) - z -> select(x, y - z, 0)
select(x, y, z) - y -> select(x, 0, z - y)
ramp(x, y, n) - ramp(z, w, n) -> ramp(x - z, y - w, n)
ramp(x, y, n) - broadcast(z, n) -> ramp(x - z, y, n)
broadcast(z, n) - ramp(x, y, n) -> ramp(z - x, 0 - y, n)
broadcast(x, n) - broadcast(y, n) -> broadcast(x - y, n)
"""

MUL = """
select(x, y, z) * select(x, w, v) -> select(x, y * w, z * v)
broadcast(x, n) * broadcast(y, n) -> broadcast(x * y, n)
ramp(x, y, n) * broadcast(z, n) -> ramp(x * z, y * z, n)
broadcast(z, n) * ramp(x, y, n) -> ramp(x * z, y * z, n)
"""

TRUNCDIV = """
tdiv(broadcast(x, n), broadcast(y, n)) -> broadcast(tdiv(x, y), n)
tdiv(ramp(x, c1, n), broadcast(c2, n)) -> ramp(tdiv(x, c2), tdiv(c1, c2), n) if c2 > 0 and c1 % c2 == 0 and c1 >= 0 and prove(x >= 0)
"""

TRUNCMOD = """
tmod(broadcast(x, n), broadcast(y, n)) -> broadcast(tmod(x, y), n)
tmod(ramp(x, c1, n), broadcast(c2, n)) -> broadcast(tmod(x, c2), n) if c2 > 0 and c1 % c2 == 0 and c1 >= 0 and prove(x >= 0)
"""

FLOORDIV = """
broadcast(x, n) // broadcast(y, n) -> broadcast(x // y, n)
ramp(x, c1, n) // broadcast(c2, n) -> ramp(x // c2, c1 // c2, n) if c2 != 0 and c1 % c2 == 0
"""

FLOORMOD = """
broadcast(x, n) % broadcast(y, n) -> broadcast(x % y, n)
ramp(x, c1, n) % broadcast(c2, n) -> broadcast(x % c2, n) if c2 != 0 and c1 % c2 == 0
"""

MIN = """
min(select(x, y, z), select(x, w, v)) -> select(x, min(y, w), min(z, v))
min(broadcast(x, n), broadcast(y, n)) -> broadcast(min(x, y), n)
min(min(x, broadcast(y, n)), broadcast(z, n)) -> min(x, broadcast(min(y, z), n))
"""

EQ = """
broadcast(x, n) == broadcast(y, n) -> broadcast(x == y, n)
ramp(x, z, n) == ramp(y, z, n) -> broadcast(x == y, n)
"""

LT = """
broadcast(x, n) < broadcast(y, n) -> broadcast(x < y, n)
ramp(x, z, n) < ramp(y, z, n) -> broadcast(x < y, n)
"""

AND = """
broadcast(x, n) and broadcast(y, n) -> broadcast(x and y, n)
"""

OR = """
broadcast(x, n) or broadcast(y, n) -> broadcast(x or y, n)
"""

NOT = """
not broadcast(x, n) -> broadcast(not x, n)
"""

SELECT = """
"""
