"""Laws of floor division and its remainder."""

FLOORDIV = """
0 // x -> 0
x // 1 -> x
x // x -> 1
(x // c1) // c2 -> x // (c1*c2) if c1 > 0 and c2 > 0
(x // c1 + c2) // c3 -> (x + c1*c2) // (c1*c3) if c1 > 0 and c3 > 0
(x*c1) // c2 -> x * (c1 // c2) if c2 > 0 and c1 % c2 == 0
(x*c1) // c2 -> x // (c2 // c1) if c1 > 0 and c2 > 0 and c2 % c1 == 0
(x*c1 + c2) // c3 -> x // (c3 // c1) + c2 // c3 if c1 > 0 and c3 > 0 and c3 % c1 == 0 and c2 % c3 < c1
(x*c1 + y) // c2 -> x*(c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
(y + x*c1) // c2 -> x*(c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
(y - x*c1) // c2 -> x*(-c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
((x*c1 + y) + z) // c2 -> x*(c1 // c2) + (y + z) // c2 if c2 > 0 and c1 % c2 == 0
((x*c1 - y) + z) // c2 -> x*(c1 // c2) + (z - y) // c2 if c2 > 0 and c1 % c2 == 0
((x*c1 + y) - z) // c2 -> x*(c1 // c2) + (y - z) // c2 if c2 > 0 and c1 % c2 == 0
((y + x*c1) + z) // c2 -> x*(c1 // c2) + (y + z) // c2 if c2 > 0 and c1 % c2 == 0
(z + (x*c1 + y)) // c2 -> x*(c1 // c2) + (z + y) // c2 if c2 > 0 and c1 % c2 == 0
(z + (y + x*c1)) // c2 -> x*(c1 // c2) + (z + y) // c2 if c2 > 0 and c1 % c2 == 0
(x*c1 + y) // c2 -> x // (c2 // c1) if c1 > 0 and c2 > 0 and c2 % c1 == 0 and prove(y >= 0) and prove(y < c1)
(y + x*c1) // c2 -> x // (c2 // c1) if c1 > 0 and c2 > 0 and c2 % c1 == 0 and prove(y >= 0) and prove(y < c1)
(x*c1) // c2 -> x*(c1 // c2) if c2 > 0 and c1 > c2 and prove(x >= 0) and prove(x*(c1 % c2) < c2)
(x*c1 + y) // c2 -> x*(c1 // c2) if c2 > 0 and c1 > c2 and prove(x*(c1 % c2) + y >= 0) and prove(x*(c1 % c2) + y < c2)
(y + x*c1) // c2 -> x*(c1 // c2) if c2 > 0 and c1 > c2 and prove(x*(c1 % c2) + y >= 0) and prove(x*(c1 % c2) + y < c2)
min(x*c1, y) // c2 -> min(x*(c1 // c2), y // c2) if c2 > 0 and c1 % c2 == 0
min(y, x*c1) // c2 -> min(y // c2, x*(c1 // c2)) if c2 > 0 and c1 % c2 == 0
max(x*c1, y) // c2 -> max(x*(c1 // c2), y // c2) if c2 > 0 and c1 % c2 == 0
max(y, x*c1) // c2 -> max(y // c2, x*(c1 // c2)) if c2 > 0 and c1 % c2 == 0
(x + c1) // c2 -> x // c2 + c1 // c2 if c2 > 0 and c1 % c2 == 0
(x + y) // x -> y // x + 1 if prove(x > 0)
(y + x) // x -> y // x + 1 if prove(x > 0)
(x*y) // y -> x
(y*x) // y -> x
(x*z + y) // z -> x + y // z
(z*x + y) // z -> x + y // z
(y + x*z) // z -> y // z + x
(y + z*x) // z -> y // z + x
((x + y) + z) // x -> (y + z) // x + 1 if prove(x > 0)
((y + x) + z) // x -> (y + z) // x + 1 if prove(x > 0)
(y + (z + x)) // x -> (y + z) // x + 1 if prove(x > 0)
(y + (x + z)) // x -> (y + z) // x + 1 if prove(x > 0)
(x % c1) // c2 -> 0 if c1 > 0 and c2 >= c1
(x - x % c1) // c1 -> x // c1 if c1 != 0
(x*c1) // (y*c2) -> (x*(c1 // c2)) // y if c2 != 0 and c1 % c2 == 0
"""

FLOORMOD = """
0 % x -> 0
x % c1 -> x if c1 > 0 and prove(x >= 0) and prove(x < c1)
x % 1 -> 0
x % x -> 0
(x*c1) % c2 -> 0 if c2 != 0 and c1 % c2 == 0
(x*c1) % c2 -> (x*(c1 % c2)) % c2 if c2 > 0 and (c1 >= c2 or c1 < 0)
(x*c1 + y) % c2 -> y % c2 if c2 > 0 and c1 % c2 == 0
(y + x*c1) % c2 -> y % c2 if c2 > 0 and c1 % c2 == 0
(y - x*c1) % c2 -> y % c2 if c2 > 0 and c1 % c2 == 0
(x*c1 + y) % c2 -> (x*(c1 % c2) + y) % c2 if c2 > 0 and (c1 >= c2 or c1 < 0)
(y + x*c1) % c2 -> (y + x*(c1 % c2)) % c2 if c2 > 0 and (c1 >= c2 or c1 < 0)
(x + c1) % c2 -> x % c2 if c2 > 0 and c1 % c2 == 0
(x + c1) % c2 -> (x + c1 % c2) % c2 if c2 > 0 and (c1 >= c2 or c1 < 0)
(x + y*z) % z -> x % z
(x + z*y) % z -> x % z
(x*z + y) % z -> y % z
(z*x + y) % z -> y % z
(x*y) % y -> 0
(y*x) % y -> 0
(x % c1) % c2 -> x % c2 if c2 > 0 and c1 % c2 == 0
(x % c1) % c2 -> x % c1 if c1 > 0 and c2 >= c1
(x*c1 + c2) % c3 -> (x % (c3 // c1))*c1 + c2 if c1 > 0 and c3 > 0 and c3 % c1 == 0 and 0 <= c2 and c2 < c1
(x*c1 + y) % c2 -> (x % (c2 // c1))*c1 + y if c1 > 0 and c2 > 0 and c2 % c1 == 0 and prove(y >= 0) and prove(y < c1)
(y + x*c1) % c2 -> y + (x % (c2 // c1))*c1 if c1 > 0 and c2 > 0 and c2 % c1 == 0 and prove(y >= 0) and prove(y < c1)
(x % c1 + y) % c2 -> (x + y) % c2 if c2 > 0 and c1 % c2 == 0 and c1 > 0
(y + x % c1) % c2 -> (y + x) % c2 if c2 > 0 and c1 % c2 == 0 and c1 > 0
(x*c1) % (y*c2) -> (x*(c1 // c2) % y)*c2 if c2 != 0 and c1 % c2 == 0
(x + y) % x -> y % x
(y + x) % x -> y % x
"""
