"""Laws of connectives of conditions and of selections."""

NOT = """
not not x -> x
not (x < y) -> y <= x
not (x <= y) -> y < x
not (x > y) -> x <= y
not (x >= y) -> x < y
not (x == y) -> x != y
not (x != y) -> x == y
not (x and y) -> (not x) or (not y)
not (x or y) -> (not x) and (not y)
"""

AND = """
x and x -> x
x and not x -> False
not x and x -> False
~ x == y and x != y -> False
~ x <= y and y < x -> False
~ x < y and y < x -> False
~ x < y and x <= y -> x < y
~ x <= y and y <= x -> x == y
~ 0 <= x + y*c1 and x + y*c1 < c2 -> y == x // c2 if c2 > 0 and c1 == -c2
~ x < c1 and c2 < x -> False if c2 + 1 >= c1
~ x < c1 and c2 <= x -> False if c2 >= c1
~ x <= c1 and c2 < x -> False if c2 >= c1
~ x <= c1 and c2 <= x -> False if c2 > c1
~ x < c1 and x < c2 -> x < min(c1, c2)
~ x <= c1 and x <= c2 -> x <= min(c1, c2)
~ c1 < x and c2 < x -> max(c1, c2) < x
~ c1 <= x and c2 <= x -> max(c1, c2) <= x
~ x < c1 and x <= c2 -> x < c1 if c1 <= c2 + 1
~ x < c1 and x <= c2 -> x <= c2 if c1 > c2
~ c1 < x and c2 <= x -> c1 < x if c1 + 1 >= c2
~ c1 < x and c2 <= x -> c2 <= x if c1 < c2
x == c1 and x == c2 -> False if c1 != c2
~ x == c1 and x != c2 -> x == c1 if c1 != c2
~ x == c1 and x < c2 -> x == c1 if c1 < c2
~ x == c1 and x < c2 -> False if c1 >= c2
~ x == c1 and x <= c2 -> x == c1 if c1 <= c2
~ x == c1 and x <= c2 -> False if c1 > c2
~ x == c1 and c2 < x -> x == c1 if c2 < c1
~ x == c1 and c2 < x -> False if c2 >= c1
~ x == c1 and c2 <= x -> x == c1 if c2 <= c1
~ x == c1 and c2 <= x -> False if c2 > c1
~ x // c1 == c2 and x % c1 == c3 -> x == c1*c2 + c3 if c1 > 0 and 0 <= c3 and c3 < c1
(x and y) and x -> x and y
(x and y) and y -> x and y
x and (x and y) -> x and y
y and (x and y) -> x and y
~ x and (x or y) -> x
x and (y and z) -> (x and y) and z
"""

OR = """
x or x -> x
x or not x -> True
not x or x -> True
~ x == y or x != y -> True
~ x <= y or y < x -> True
~ x <= y or y <= x -> True
~ x < y or y < x -> x != y
~ x < y or x <= y -> x <= y
~ x < y or x == y -> x <= y
~ x < y or y == x -> x <= y
~ x < c1 or c2 < x -> True if c2 < c1
~ x < c1 or c2 <= x -> True if c2 <= c1
~ x <= c1 or c2 < x -> True if c2 <= c1
~ x <= c1 or c2 <= x -> True if c2 <= c1 + 1
~ x < c1 or x < c2 -> x < max(c1, c2)
~ x <= c1 or x <= c2 -> x <= max(c1, c2)
~ c1 < x or c2 < x -> min(c1, c2) < x
~ c1 <= x or c2 <= x -> min(c1, c2) <= x
~ x < c1 or x <= c2 -> x <= c2 if c1 <= c2 + 1
~ x < c1 or x <= c2 -> x < c1 if c1 > c2
~ c1 < x or c2 <= x -> c2 <= x if c1 + 1 >= c2
~ c1 < x or c2 <= x -> c1 < x if c1 < c2
x != c1 or x != c2 -> True if c1 != c2
~ x != c1 or x == c2 -> x != c1 if c1 != c2
(x or y) or x -> x or y
(x or y) or y -> x or y
x or (x or y) -> x or y
y or (x or y) -> x or y
~ x or (x and y) -> x
x or (y or z) -> (x or y) or z
"""

SELECT = """
select(x, y, y) -> y
select(not x, y, z) -> select(x, z, y)
select(x, True, False) -> x
select(x, False, True) -> not x
"""

IF_THEN_ELSE = """
ite(x, y, y) -> y
"""

# Only where `Extension.ConvertBooleanToAndOfOrs` asks for it.
FACTORING = """
~ (x and y) or (x and z) -> x and (y or z)
"""
