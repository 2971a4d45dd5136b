"""Laws of comparisons of indices. Everything is asked as `==` or `<`; the others are these with sides or answer exchanged."""

EQ = """
x == x -> True
c1 == x -> x == c1
x + c1 == c2 -> x == c2 - c1
c1 - x == c2 -> x == c1 - c2
x*c1 == c2 -> x == c2 // c1 if c1 != 0 and c2 % c1 == 0
x*c1 == c2 -> False if c1 != 0 and c2 % c1 != 0
x*y == 0 -> x == 0 or y == 0
x - y == 0 -> x == y
~ x + y == x + z -> y == z
~ x + y == x -> y == 0
x == x + y -> y == 0
x == y + x -> y == 0
x - y == x - z -> y == z
y - x == z - x -> y == z
x - y == x -> y == 0
x == x - y -> y == 0
x + c1 == y + c2 -> x == y + (c2 - c1)
x*c1 == y*c1 -> x == y if c1 != 0
~ min(x, y) == x -> x <= y
~ max(x, y) == x -> y <= x
x == min(x, y) -> x <= y
x == min(y, x) -> x <= y
x == max(x, y) -> y <= x
x == max(y, x) -> y <= x
"""

LT = """
x < x -> False
~ x + y < x + z -> y < z
~ x + y < x -> y < 0
x < x + y -> 0 < y
x < y + x -> 0 < y
x - y < x - z -> z < y
y - x < z - x -> y < z
x - y < x -> 0 < y
x < x - y -> y < 0
x < x*c1 -> 0 < x if c1 > 1
x + c1 < c2 -> x < c2 - c1
c1 < x + c2 -> c1 - c2 < x
c1 - x < c2 -> c1 - c2 < x
c1 < c2 - x -> x < c2 - c1
~ min(x, y) < min(x, z) -> y < min(x, z)
~ max(x, y) < max(x, z) -> max(x, y) < z
~ min(x, y) < x -> y < x
~ max(x, y) < x -> False
~ x < max(x, y) -> x < y
x < min(x, y) -> False
x < min(y, x) -> False
min(x, y) < z -> x < z or y < z
max(x, y) < z -> x < z and y < z
z < min(x, y) -> z < x and z < y
z < max(x, y) -> z < x or z < y
c1 - x < y -> c1 < y + x
y < c1 - x -> y + x < c1
x - y < 0 -> x < y
0 < x - y -> y < x
x*c1 < y*c1 -> x < y if c1 > 0
x*c1 < y*c1 -> y < x if c1 < 0
x*c1 < y*c2 -> x*(c1 // gcd(c1, c2)) < y*(c2 // gcd(c1, c2)) if gcd(c1, c2) > 1
x*c1 < y*c1 + c2 -> x <= y if c1 > 0 and c2 > 0 and c2 <= c1
x*c1 + c2 < y*c1 -> x < y if c1 > 0 and 0 <= c2 and c2 < c1
x*c1 + c2 < y*c1 -> x + c2 // c1 < y if c1 > 0 and c2 % c1 == 0
x*c1 < y*c1 + c2 -> x < y + c2 // c1 if c1 > 0 and c2 % c1 == 0
x*c1 < c2 -> x < (c2 - 1) // c1 + 1 if c1 > 0
x*c1 < c2 -> c2 // c1 < x if c1 < 0
c2 < x*c1 -> c2 // c1 < x if c1 > 0
c2 < x*c1 -> x < -(c2 // -c1) if c1 < 0
tdiv(x, c1) < c2 -> x < c1*c2 if c1 > 0 and c2 > 0
tdiv(x, c1) < c2 -> x < (c2 - 1)*c1 + 1 if c1 > 0 and c2 <= 0
c1 < tdiv(x, c2) -> (c1 + 1)*c2 - 1 < x if c1 >= 0 and c2 > 0
c1 < tdiv(x, c2) -> c1*c2 < x if c1 < 0 and c2 > 0
x // c1 < c2 -> x < c1*c2 if c1 > 0
c1 < x // c2 -> (c1 + 1)*c2 - 1 < x if c2 > 0
(x // c1)*c1 < x -> 0 < x % c1 if c1 > 0
(x // c1)*c1 < x + y -> 0 < x % c1 + y if c1 > 0
(x // c1)*c1 < x - y -> y < x % c1 if c1 > 0
((x + c2) // c1)*c1 < x -> c2 < (x + c2) % c1 if c1 > 0
((x + c2) // c1)*c1 < x + y -> c2 < (x + c2) % c1 + y if c1 > 0
((x + c2) // c1)*c1 < x - y -> y + c2 < (x + c2) % c1 if c1 > 0
tdiv(x, c1)*c1 < x -> 0 < tmod(x, c1) if c1 > 0
tdiv(x, c1)*c1 < x + y -> 0 < tmod(x, c1) + y if c1 > 0
tdiv(x, c1)*c1 < x - y -> y < tmod(x, c1) if c1 > 0
tdiv(x + c2, c1)*c1 < x -> c2 < tmod(x + c2, c1) if c1 > 0
tdiv(x + c2, c1)*c1 < x + y -> c2 < tmod(x + c2, c1) + y if c1 > 0
tdiv(x + c2, c1)*c1 < x - y -> y + c2 < tmod(x + c2, c1) if c1 > 0
x + c1 < y + c2 -> x < y + (c2 - c1) if c2 > c1
x + c1 < y + c2 -> x + (c1 - c2) < y if c1 >= c2
x < y + 1 -> x <= y
x + (-1) < y -> x <= y
x + c1 < y -> x < y + (-c1) if c1 < 0
x < y + c1 -> x + (-c1) < y if c1 < 0
"""
