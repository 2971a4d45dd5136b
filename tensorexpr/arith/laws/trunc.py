"""Laws of division that truncates towards zero, and of its remainder."""

TRUNCDIV = """
tdiv(0, x) -> 0
tdiv(x, 1) -> x
tdiv(x, x) -> 1
tdiv(tdiv(x, c1), c2) -> tdiv(x, c1*c2) if c1 > 0 and c2 > 0
tdiv(tdiv(x, c1) + c2, c3) -> tdiv(x + c1*c2, c1*c3) if c1 > 0 and c2 >= 0 and c3 > 0 and prove(x >= 0)
tdiv(x*c1, c2) -> x * tdiv(c1, c2) if c2 != 0 and c1 % c2 == 0
tdiv(x*c1, c2) -> tdiv(x, tdiv(c2, c1)) if c1 > 0 and c2 > 0 and c2 % c1 == 0
tdiv(x*c1 + y, c2) -> x*tdiv(c1, c2) + tdiv(y, c2) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(y >= 0)
tdiv(y + x*c1, c2) -> tdiv(y, c2) + x*tdiv(c1, c2) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(y >= 0)
tdiv(x*c1 - y, c2) -> x*tdiv(c1, c2) - tdiv(y, c2) if c1 >= 0 and c2 > 0 and c1 % c2 == 0 and prove(x*c1 - y >= 0) and prove(y <= 0)
tdiv((x*c1 + y) + z, c2) -> x*tdiv(c1, c2) + tdiv(y + z, c2) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(y + z >= 0)
tdiv((x*c1 - y) + z, c2) -> x*tdiv(c1, c2) + tdiv(z - y, c2) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(z - y >= 0)
tdiv((x*c1 + y) - z, c2) -> x*tdiv(c1, c2) + tdiv(y - z, c2) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(y - z >= 0)
tdiv(z + (x*c1 + y), c2) -> x*tdiv(c1, c2) + tdiv(z + y, c2) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(y + z >= 0)
tdiv(min(x*c1, y), c2) -> min(x*tdiv(c1, c2), tdiv(y, c2)) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(y >= 0)
tdiv(max(x*c1, y), c2) -> max(x*tdiv(c1, c2), tdiv(y, c2)) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(y >= 0)
tdiv(min(y, x*c1), c2) -> min(tdiv(y, c2), x*tdiv(c1, c2)) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(y >= 0)
tdiv(max(y, x*c1), c2) -> max(tdiv(y, c2), x*tdiv(c1, c2)) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0) and prove(y >= 0)
tdiv(x + c1, c2) -> tdiv(x, c2) + tdiv(c1, c2) if c1 > 0 and c2 > 0 and c1 % c2 == 0 and prove(x >= 0)
tdiv(x + y, x) -> tdiv(y, x) + 1 if prove(x > 0) and prove(y >= 0)
tdiv(y + x, x) -> tdiv(y, x) + 1 if prove(x > 0) and prove(y >= 0)
tdiv((x + y) + z, x) -> tdiv(y + z, x) + 1 if prove(x > 0) and prove(y + z >= 0)
tdiv((y + x) + z, x) -> tdiv(y + z, x) + 1 if prove(x > 0) and prove(y + z >= 0)
tdiv(y + (z + x), x) -> tdiv(y + z, x) + 1 if prove(x > 0) and prove(y + z >= 0)
tdiv(y + (x + z), x) -> tdiv(y + z, x) + 1 if prove(x > 0) and prove(y + z >= 0)
tdiv(x*y, y) -> x
tdiv(y*x, y) -> x
tdiv(x*z + y, z) -> x + tdiv(y, z) if prove(x >= 0) and prove(y >= 0) and prove(z > 0)
tdiv(z*x + y, z) -> x + tdiv(y, z) if prove(x >= 0) and prove(y >= 0) and prove(z > 0)
tdiv(y + x*z, z) -> tdiv(y, z) + x if prove(x >= 0) and prove(y >= 0) and prove(z > 0)
tdiv(y + z*x, z) -> tdiv(y, z) + x if prove(x >= 0) and prove(y >= 0) and prove(z > 0)
tdiv(x - tmod(x, c1), c1) -> tdiv(x, c1) if c1 != 0
"""

TRUNCMOD = """
tmod(0, x) -> 0
tmod(x, c1) -> x if c1 > 0 and prove(x >= 0) and prove(x < c1)
tmod(x, c1) -> x if c1 > 0 and prove(x > -c1) and prove(x < c1)
tmod(x, x) -> 0
tmod(x*c1, c2) -> 0 if c2 != 0 and c1 % c2 == 0
tmod(x*c1 + y, c2) -> tmod(y, c2) if c2 > 0 and c1 % c2 == 0 and prove(x*c1 >= 0) and prove(y >= 0)
tmod(y + x*c1, c2) -> tmod(y, c2) if c2 > 0 and c1 % c2 == 0 and prove(x*c1 >= 0) and prove(y >= 0)
tmod(x + c1, c2) -> tmod(x, c2) if c2 > 0 and c1 >= 0 and c1 % c2 == 0 and prove(x >= 0)
tmod(x, c1) -> tmod(x, -c1) if c1 < 0
"""
