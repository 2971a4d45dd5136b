"""Laws of sums and differences of indices."""

ADD = """
c1 + x -> x + c1
(x + c1) + c2 -> x + (c1 + c2)
(c1 - x) + c2 -> (c1 + c2) - x
(x - y) + y -> x
y + (x - y) -> x
(x - y) + (y - z) -> x - z
(x - y) + (z - x) -> z - y
~ min(x, y) + max(x, y) -> x + y
min(x, y - z) + z -> min(x + z, y)
min(x - z, y) + z -> min(x, y + z)
max(x, y - z) + z -> max(x + z, y)
max(x - z, y) + z -> max(x, y + z)
min(x, y + z*c1) + z*c2 -> min(x + z*c2, y) if c1 == -c2
max(x, y + z*c1) + z*c2 -> max(x + z*c2, y) if c1 == -c2
min(y + z*c1, x) + z*c2 -> min(x + z*c2, y) if c1 == -c2
max(y + z*c1, x) + z*c2 -> max(x + z*c2, y) if c1 == -c2
min(x, y + c1) + c2 -> min(x + c2, y) if c1 == -c2
min(x + c1, y) + c2 -> min(x, y + c2) if c1 == -c2
max(x, y + c1) + c2 -> max(x + c2, y) if c1 == -c2
max(x + c1, y) + c2 -> max(x, y + c2) if c1 == -c2
x + x -> x * 2
x % c1 + y*c1 -> y*c1 + x % c1
tmod(x, c1) + y*c1 -> y*c1 + tmod(x, c1)
~ x*y + x -> x * (y + 1) if not constant(x)
x*y + x*z -> x * (y + z)
y*x + x*z -> x * (y + z)
x*y + z*x -> x * (y + z)
y*x + z*x -> (y + z) * x
tdiv(x, c1)*c1 + tmod(x, c1) -> x if c1 != 0
(x // y)*y + x % y -> x
y*(x // y) + x % y -> x
x % y + (x // y)*y -> x
x % y + y*(x // y) -> x
(x // c1)*c2 + (x % c1)*c3 -> x*c3 if c1 != 0 and c2 == c1*c3
(x % c1)*c3 + (x // c1)*c2 -> x*c3 if c1 != 0 and c2 == c1*c3
(x // c1 % c2)*c1 + x % c1 -> x % (c1*c2) if c1 > 0 and c2 > 0
x % c1 + (x // c1 % c2)*c1 -> x % (c1*c2) if c1 > 0 and c2 > 0
(x % c1 // c2)*c2 + x % c2 -> x % c1 if c1 > 0 and c2 > 0 and c1 % c2 == 0
x % c2 + (x % c1 // c2)*c2 -> x % c1 if c1 > 0 and c2 > 0 and c1 % c2 == 0
(x % c2 + c1) // c2 + x // c2 -> (x + c1) // c2 if c2 > 0
x // c2 + (x % c2 + c1) // c2 -> (x + c1) // c2 if c2 > 0
x % c2 // c1 + x // c2 * c3 -> x // c1 if c1 > 0 and c2 == c1*c3 and c3 > 0
x // c2 * c3 + x % c2 // c1 -> x // c1 if c1 > 0 and c2 == c1*c3 and c3 > 0
x // 2 + x % 2 -> (x + 1) // 2
x % 2 + x // 2 -> (x + 1) // 2
x + (y + c1) -> (x + y) + c1
(x + c1) + y -> (x + y) + c1
x + (c1 - y) -> (x - y) + c1
(c1 - x) + y -> (y - x) + c1
x + min(y, z) -> min(y, z) + x if not extremum(x)
x + max(y, z) -> max(y, z) + x if not extremum(x)
(x // (y*z))*y + (x % (y*z)) // z -> x // z
(x // (y*z))*z + (x % (y*z)) // y -> x // y
"""

SUB = """
x - x -> 0
x - (y - z) -> (x + z) - y
c1 - (c2 - x) -> x + (c1 - c2)
c1 - (x + c2) -> (c1 - c2) - x
(x + c1) - y -> (x - y) + c1
x - (y + c1) -> (x - y) + (-c1)
(x + y) - y -> x
(x + y) - x -> y
x - (y + x) -> 0 - y
x - (x + y) -> 0 - y
(x - y) - x -> 0 - y
min(x, y) - x -> min(0, y - x)
min(x, y) - y -> min(x - y, 0)
max(x, y) - x -> max(0, y - x)
max(x, y) - y -> max(x - y, 0)
x - max(x, y) -> min(0, x - y)
y - max(x, y) -> min(y - x, 0)
x - min(x, y) -> max(0, x - y)
y - min(x, y) -> max(y - x, 0)
x*y - x -> x * (y - 1) if not constant(x)
y*x - x -> x * (y - 1) if not constant(x)
x - y*x -> x * (1 - y)
x - x*y -> x * (1 - y)
x*y - x*z -> x * (y - z)
y*x - x*z -> x * (y - z)
x*y - z*x -> x * (y - z)
y*x - z*x -> (y - z) * x
(x + y) - (x + z) -> y - z
(x + y) - (z + x) -> y - z
(y + x) - (z + x) -> y - z
(y + x) - (x + z) -> y - z
((x + y) + z) - x -> y + z
((y + x) + z) - x -> y + z
(z + (x + y)) - x -> z + y
(z + (y + x)) - x -> z + y
x - (y + (x + z)) -> 0 - (y + z)
min(x + y, z) - x -> min(y, z - x)
min(y + x, z) - x -> min(y, z - x)
min(z, x + y) - x -> min(z - x, y)
min(z, y + x) - x -> min(z - x, y)
min(x + y, x + z) - x -> min(y, z)
max(x + y, z) - x -> max(y, z - x)
max(y + x, z) - x -> max(y, z - x)
max(z, x + y) - x -> max(z - x, y)
max(z, y + x) - x -> max(z - x, y)
x - min(x + y, z) -> max(0 - y, x - z)
x - min(y + x, z) -> max(0 - y, x - z)
x - min(z, x + y) -> max(x - z, 0 - y)
x - min(z, y + x) -> max(x - z, 0 - y)
x - max(x + y, z) -> min(0 - y, x - z)
x - max(y + x, z) -> min(0 - y, x - z)
x - max(z, x + y) -> min(x - z, 0 - y)
x - max(z, y + x) -> min(x - z, 0 - y)
min(x, y) - min(y, x) -> 0
max(x, y) - max(y, x) -> 0
min(x, y) - min(z, w) -> y - w if prove(x - y == z - w)
min(x, y) - min(z, w) -> y - z if prove(x - y == w - z)
max(x, y) - max(z, w) -> y - w if prove(x - y == z - w)
max(x, y) - max(z, w) -> y - z if prove(x - y == w - z)
x - tdiv(x, c1)*c1 -> tmod(x, c1) if c1 != 0
tdiv(x, c1)*c2 - x -> 0 - tmod(x, c1) if c1 == c2 and c1 != 0
x - (x // c1)*c1 -> x % c1 if c1 != 0
(x // c1)*c1 - x -> 0 - x % c1 if c1 != 0
((x + c1) // c2)*c2 - x -> c1 - (x + c1) % c2 if c2 != 0
x - ((x + c1) // c2)*c2 -> (x + c1) % c2 - c1 if c2 != 0
(x + c1) // c3 - (x + c2) // c3 -> ((x + (c2 % c3)) % c3 + (c1 - c2)) // c3 if c3 > 0
(x + c1) // c3 - x // c3 -> (x % c3 + c1) // c3 if c3 > 0
tdiv(x + c1, c3) - tdiv(x, c3) -> tdiv(tmod(x, c3) + c1, c3) if c3 > 0 and c1 >= 0 and prove(x >= 0)
(x - y) - (z - y) -> x - z
(y - x) - (y - z) -> z - x
x - y*c1 -> x + y*(-c1)
x - c1 -> x + (-c1)
"""
