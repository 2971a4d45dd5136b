"""Functions that C text defines for itself where an operation of the language is no operator of C, each on first use."""

from __future__ import annotations

from ..dataclass import dataclass, field
from ..tir.dtype import int_limits, parse_dtype
from .c_types import float_literal, int_literal, is_narrow, memory_type, value_type
from .low_precision import FORMS

_BITS = """\
static inline {U} {name}({T} x) {{
  {U} bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}}
"""
_QUOTIENT = """\
static inline {T} {name}({T} a, {T} b) {{
  if (b == 0) return 0;
  if (b == -1) return ({T})(0 - ({U})a);
  return ({T})({value});
}}
"""
_REMAINDER = """\
static inline {T} {name}({T} a, {T} b) {{
  if (b == 0 || b == -1) return 0;
  return ({T})({value});
}}
"""
_UNSIGNED = """\
static inline {T} {name}({T} a, {T} b) {{
  return ({T})(b == 0 ? 0 : a {sign} b);
}}
"""
# Of signed integers: towards 0 as C does, or floored, where the remainder has the sign of the divisor.
_SIGNED = {
    "div": (_QUOTIENT, "a / b"),
    "mod": (_REMAINDER, "a % b"),
    "floordiv": (_QUOTIENT, "a / b - (a % b != 0 && (a < 0) != (b < 0))"),
    "floormod": (_REMAINDER, "a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b"),
}
_EXTREME = """\
static inline {T} {name}({T} a, {T} b) {{
  return a {sign} b ? a : b;
}}
"""
# NaN becomes 0, what lies beyond the integers their nearest end.
_TO_INTEGER = """\
static inline {T} {name}({F} x) {{
  if (!(x > {low})) return {nearest};
  return x >= {end} ? {last} : ({T})x;
}}
"""
_SHIFT = """\
static inline {T} {name}({T} x, {T} count) {{
  {U} by = ({U})count;
  return {value};
}}
"""
_COUNT = """\
static inline {T} {name}({T} x) {{
  {U} rest = ({U})x;
  int count = {start};
  for (; rest != 0; rest = ({U}){step}) count {change};
  return ({T})count;
}}
"""
_FROM_NARROW = """\
static inline float {name}({U} x) {{
  uint32_t magnitude = x & {rest}u;
  uint32_t bits = bits_of_float32(float32_of_bits(magnitude << {cut}) * {scale});
  if (magnitude >= {beyond}u) bits |= 0x7f800000u;
  return float32_of_bits(bits | (uint32_t)(x & {sign}u) << {up});
}}
"""
_TO_NARROW = """\
static inline {U} {name}(float x) {{
  uint32_t bits = bits_of_float32(x), magnitude = bits & 0x7fffffffu, result;
  if (magnitude > 0x7f800000u) {{
    result = {nan}u;
  }} else if (magnitude >= {overflow}u) {{
    result = {beyond}u;
  }} else if (magnitude < {small}u) {{
    result = bits_of_float32(float32_of_bits(magnitude) + {magic}) - {offset}u;
  }} else {{
    result = (magnitude - {rebias}u + {half}u + ((magnitude >> {cut}) & 1)) >> {cut};
  }}
  return ({U})(result | bits >> 31 << {top});
}}
"""
_FROM_BFLOAT = """\
static inline float {name}(uint16_t x) {{
  return float32_of_bits((uint32_t)x << 16);
}}
"""
_TO_BFLOAT = """\
static inline uint16_t {name}(float x) {{
  uint32_t bits = bits_of_float32(x);
  if (x != x) return (uint16_t)(bits >> 16 | 0x40u);
  return (uint16_t)((bits + ((bits >> 16) & 1) + 0x7fffu) >> 16);
}}
"""
_ROUND = """\
static inline float {name}(float x) {{
  return {dtype}_to_float({dtype}_of_float(x));
}}
"""
# The last bit is odd unless the value is exact, so that a second rounding is right (Boldo and Melquiond).
_ODD_DOUBLE = """\
static inline float float32_odd(double x) {
  float near = (float)x;
  uint32_t bits = bits_of_float32(near);
  if (x != x || (double)near == x) return near;
  if (fabs((double)near) > fabs(x)) bits -= 1;
  return float32_of_bits(bits | 1);
}
"""
_ODD_INTEGER = """\
static inline double {name}({T} x) {{
  if ({inside}) return (double)x;
  return (double)({T})((({U})x | ((({U})x & 0x7ffu) + 0x7ffu)) & ~({U})0x7ffu);
}}
"""


@dataclass(slots=True)
class Helpers:
    """The helpers that a text uses, each behind those that it calls itself."""

    _texts: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """All definitions."""
        return "\n".join(self._texts.values())

    def _add(self, name: str, template: str, **parts: object) -> str:
        if name not in self._texts:
            self._texts[name] = template.format(name=name, **parts)
        return name

    def quotient(self, kind: str, dtype: str) -> str:
        """Division by any number: `kind` is div, mod, floordiv or floormod. By 0 all give 0."""
        if not parse_dtype(dtype).is_signed:
            kind = kind.removeprefix("floor")
            return self._add(f"{kind}_{dtype}", _UNSIGNED, T=value_type(dtype), sign="/" if kind == "div" else "%")
        template, value = _SIGNED[kind]
        return self._add(f"{kind}_{dtype}", template, T=value_type(dtype), U=value_type(f"u{dtype}"), value=value)

    def extreme(self, kind: str, dtype: str) -> str:
        """min or max."""
        return self._add(f"{kind}_{dtype}", _EXTREME, T=value_type(dtype), sign="<" if kind == "min" else ">")

    def to_integer(self, source: str, dtype: str) -> str:
        """A float32 or float64 as an integer."""
        first, last = int_limits(dtype)
        low, end = (float_literal(float(limit), source) for limit in (first, last + 1))
        nearest = f"x != x ? 0 : {int_literal(first, dtype)}" if first else "0"
        parts = {"T": value_type(dtype), "F": value_type(source), "low": low, "end": end, "last": int_literal(last, dtype)}
        return self._add(f"{dtype}_of_{source}", _TO_INTEGER, nearest=nearest, **parts)

    def shift(self, left: bool, dtype: str) -> str:
        """A shift by any count: by the width or more, and by negative ones, all bits leave."""
        parsed = parse_dtype(dtype)
        unsigned, width = f"uint{parsed.bits}_t", parsed.bits
        if left or not parsed.is_signed:
            value = f"by < {width} ? ({value_type(dtype)})(({unsigned})x {'<<' if left else '>>'} by) : 0"
        else:
            value = f"({value_type(dtype)})(x >> (by < {width} ? by : {width - 1}))"
        return self._add(f"shift_{'left' if left else 'right'}_{dtype}", _SHIFT, T=value_type(dtype), U=unsigned, value=value)

    def count(self, kind: str, dtype: str) -> str:
        """popcount or clz."""
        width = parse_dtype(dtype).bits
        start, change, step = (0, "+= 1", "(rest & (rest - 1))") if kind == "popcount" else (width, "-= 1", "(rest >> 1)")
        parts = {"T": value_type(dtype), "U": f"uint{width}_t", "start": start, "change": change, "step": step}
        return self._add(f"{kind}_{dtype}", _COUNT, **parts)

    def bits_of(self, source: str, dtype: str) -> str:
        """The bits of one type as a value of another one of the same size."""
        name = f"bits_of_{source}" if dtype.startswith("uint") else f"{dtype}_of_bits"
        if not dtype.startswith("uint") and not source.startswith("uint"):
            name = f"{dtype}_of_{source}_bits"
        return self._add(name, _BITS, T=memory_type(source), U=memory_type(dtype))

    def from_narrow(self, dtype: str) -> str:
        """The bits of a narrow float as a float."""
        self.bits_of("uint32", "float32")
        name = f"{dtype}_to_float"
        if dtype == "bfloat16":
            return self._add(name, _FROM_BFLOAT)
        self.bits_of("float32", "uint32")
        form = FORMS[parse_dtype(dtype).code]
        sign = 1 << (form.bits - 1)
        parts = {"U": memory_type(dtype), "rest": sign - 1, "cut": form.cut, "beyond": form.beyond, "sign": sign, "up": 32 - form.bits}
        return self._add(name, _FROM_NARROW, scale=float_literal(2.0**form.rebias, "float32"), **parts)

    def to_narrow(self, dtype: str) -> str:
        """A float rounded to a narrow one, as its bits."""
        self.bits_of("float32", "uint32")
        name = f"{dtype}_of_float"
        if dtype == "bfloat16":
            return self._add(name, _TO_BFLOAT)
        self.bits_of("uint32", "float32")
        form = FORMS[parse_dtype(dtype).code]
        magic = 24 - form.bias - form.mantissa
        parts = {"U": memory_type(dtype), "nan": form.nan, "overflow": form.overflow, "beyond": form.beyond, "cut": form.cut}
        parts |= {"small": (form.rebias + 1) << 23, "magic": float_literal(2.0**magic, "float32"), "offset": (127 + magic) << 23}
        return self._add(name, _TO_NARROW, rebias=form.rebias << 23, half=(1 << (form.cut - 1)) - 1, top=form.bits - 1, **parts)

    def rounded(self, dtype: str) -> str:
        """A float rounded to a narrow one, as a float."""
        self.from_narrow(dtype)
        self.to_narrow(dtype)
        return self._add(f"{dtype}_rounded", _ROUND, dtype=dtype)

    def odd(self, source: str) -> str:
        """A float64, or an integer of 64 bits, one step before it is rounded to a narrow float."""
        assert not is_narrow(source)
        if source == "float64":
            self.bits_of("float32", "uint32")
            self.bits_of("uint32", "float32")
            self._texts.setdefault("float32_odd", _ODD_DOUBLE)
            return "float32_odd"
        exact = "9007199254740992"
        inside = f"x >= -{exact}ll && x <= {exact}ll" if source == "int64" else f"x <= {exact}ull"
        return self._add(f"float64_odd_{source}", _ODD_INTEGER, T=value_type(source), U="uint64_t", inside=inside)
