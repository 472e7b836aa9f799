"""Exponential functions, tanh and erf of f32 and f64 as straight-line code that vectorises: at most 2 ulp off.

Each works on scalars and vectors alike, for all inputs, infinities, NaN and subnormal numbers included. What differs
between the formats are the coefficients of `coefficients.py`; with AVX-512 functions of f32 are by `tables.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from lowering.tir_to_llvm.math import tables
from lowering.tir_to_llvm.math.floats import BINARY32, Floats, has_registers, has_registers_of_doubles, scaled
from lowering.tir_to_llvm.math.tables import LN2_HIGH, LN2_LOW, LOG10_2_HIGH, LOG10_2_LOW

LOG2_E, LOG10_E, LN2 = 1.4426950408889634, 0.4342944819032518, 0.6931471805599453


@dataclass(frozen=True)
class Coefficients:
    """What functions of one format are computed from; polynomials with the lowest degree first."""

    ln2_high: float
    """`ln 2` with so few digits that its multiples by exponents are exact."""
    ln2_low: float
    half_ln2: tuple[float, float]
    """`ln 2 / 2` and what it lacks, if that counts."""
    log10_e_first: float
    """A first part of `1 / ln 10`: a power of 2 where products may be rounded twice and that would be too much."""
    log10_2_high: float
    log10_2_low: float
    half_pi: tuple[float, float]
    half_pi_parts: tuple[float, float, float]
    """Three numbers whose sum is `pi / 2`."""

    exp: tuple[float, ...]
    """`(e**r - 1 - r) / r**2` for r from `-ln 2 / 2` to `ln 2 / 2`."""
    exp2: tuple[float, ...]
    """`(2**r - 1) / r` for r from -1/2 to 1/2."""
    log: tuple[float, ...]
    """`(log(1 + t) - t + t**2 / 2) / t**3`, or of f64 `(log((1 + s) / (1 - s)) / s - 2) / s**2` in `s**2`."""
    sinh: tuple[float, ...]
    """`(sinh(r) / r - 1) / r**2` in `r**2`, for r up to 1; and so `tanh` up to `ln 2 / 4`, `asin` up to 1/2."""
    tanh: tuple[float, ...]
    asin: tuple[float, ...]
    atan: tuple[float, ...]
    """`(atan(r) / r - 1) / r**2` in `r**2`, for r up to 1."""
    sin: tuple[float, ...]
    """`(sin(r) / r - 1) / r**2` in `r**2`, for r up to `pi / 4`; and so `tan`."""
    cos: tuple[float, ...]
    """`(cos(r) - 1 + r**2 / 2) / r**4` in `r**2`."""
    tan: tuple[float, ...]
    erfc_exponent_first: float
    erfc_exponent: tuple[float, ...]
    """`-log(erfc(x)) / x - 1`, without the first part of the constant term; less exact where `erfc` is small."""

    exp_range: tuple[float, float]
    """Outside, `e**x` is 0 or infinite."""
    exp2_range: tuple[float, float]
    expm1_is_minus_one: float
    """From minus this on down."""
    tanh_is_one: float
    erf_is_one: float


SINGLE = Coefficients(
    ln2_high=LN2_HIGH,
    ln2_low=LN2_LOW,
    half_ln2=(LN2 / 2, 0.0),
    log10_e_first=0.4375,
    log10_2_high=LOG10_2_HIGH,
    log10_2_low=LOG10_2_LOW,
    half_pi=(1.5707963705062866, -4.371138828673793e-08),
    half_pi_parts=(1.570796251296997, 7.549790126404332e-08, -1.7151245100058819e-15),
    exp=(0.5, 0.16666512191295624, 0.0416661873459816, 0.008369597606360912, 0.0013951703440397978),
    exp2=(
        *(0.6931471824645996, 0.24022650718688965, 0.05550321564078331, 0.009618096053600311),
        *(0.0013402607291936874, 0.000154462453792803),
    ),
    log=(
        *(0.3333333134651184, -0.250008225440979, 0.20001226663589478, -0.1662331521511078),
        *(0.14201723039150238, -0.13160590827465057, 0.12762068212032318, -0.07633998990058899),
    ),
    sinh=(0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869470468e-06),
    tanh=(-0.33333322405815125, 0.1333114206790924, -0.05271520838141441),
    asin=(0.16666752099990845, 0.074953094124794, 0.04546914994716644, 0.024184778332710266, 0.042158305644989014),
    atan=(
        *(-0.33333298563957214, 0.1999853402376175, -0.14264102280139923, 0.10951506346464157, -0.08401581645011902),
        *(0.05792722851037979, -0.031148936599493027, 0.010899696499109268, -0.0017904058331623673),
    ),
    sin=(-0.16666655242443085, 0.008332176133990288, -0.00019516977772582322),
    cos=(0.04166664555668831, -0.0013887364184483886, 2.4438089894829318e-05),
    tan=(
        *(0.33333349227905273, 0.13332673907279968, 0.054059166461229324, 0.021284636110067368),
        *(0.010831988416612148, 9.203775698551908e-05, 0.004375935532152653),
    ),
    erfc_exponent_first=0.128379225730896,
    erfc_exponent=(
        *(-5.411965275925468e-08, 0.6366193890571594, 0.10277783125638962, -0.019153062254190445),
        *(-0.000160398572916165, 0.0016670302720740438, -0.0006328385206870735, 0.0001176417717942968),
        -9.256325029127765e-06,
    ),
    exp_range=(-104.0, 89.0),
    exp2_range=(-151.0, 129.0),
    expm1_is_minus_one=18.0,
    tanh_is_one=10.0,
    erf_is_one=4.0,
)
"""The errors of the fits are below 5e-9, so that rounding dominates."""

DOUBLE = Coefficients(
    ln2_high=0.6931471803691238,
    ln2_low=1.9082149292705877e-10,
    half_ln2=(0.34657359027997264, 1.1595234069231498e-17),
    log10_e_first=0.5,
    log10_2_high=0.3010299956658855,
    log10_2_low=-1.9043128467164274e-12,
    half_pi=(1.5707963267948966, 6.123233995736766e-17),
    half_pi_parts=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    exp=(
        *(0.5000000000000001, 0.16666666666666669, 0.041666666666623824, 0.008333333333330039, 0.0013888888917367081),
        *(0.00019841269863171557, 2.4801521057868204e-05, 2.7557268276905696e-06, 2.7620201591031547e-07),
        2.5100472505694996e-08,
    ),
    exp2=(
        *(0.6931471805599457, 0.240226506959101, 0.055504108664787874, 0.009618129107605611, 0.0013333558153967554),
        *(0.00015403530443905818, 1.5252726938110404e-05, 1.3215441255092555e-06, 1.018081220598384e-07),
        *(7.072853867025899e-09, 4.056228562957328e-10),
    ),
    log=(
        *(0.6666666666666734, 0.39999999999416563, 0.28571428742058014, 0.2222219860104591, 0.1818356310080961),
        *(0.15314077531039982, 0.14795714914497515),
    ),
    sinh=(
        *(0.16666666666666666, 0.008333333333333573, 0.00019841269841060398, 2.7557319310563802e-06),
        *(2.5052089273486597e-08, 1.606136025446249e-10, 7.501679138655717e-13, 6.522259952749962e-15),
    ),
    tanh=(
        *(-0.33333333333332477, 0.13333333332779196, -0.05396825277416589, 0.02186937013177185),
        *(-0.008857289314497165, 0.0034445982244283705),
    ),
    asin=(
        *(0.1666666666666676, 0.07499999999970865, 0.044642857174562796, 0.030381942709764374, 0.022372214938901576),
        *(0.0173516127981636, 0.013980811968520215, 0.011398977088377355, 0.010779913562414789),
        *(0.0037076136023713644, 0.021704672633194297, -0.020995326206132297, 0.03262638983201114),
    ),
    atan=(
        *(-0.3333333333333307, 0.19999999999951748, -0.14285714282588008, 0.11111111007339412, -0.09090907007749979),
        *(0.07692279888327662, -0.06666404418524195, 0.0588052978013841, -0.05253526663968211, 0.04722348001465168),
        *(-0.042192427567299406, 0.03664314612756881, -0.029905730151754233, 0.021987061907375257),
        *(-0.013902566510514996, 0.007197878417187546, -0.002885605905193663, 0.0008315582358319061),
        *(-0.00015221083562753362, 1.3229969285260582e-05),
    ),
    sin=(
        *(-0.1666666666666663, 0.00833333333332184, -0.0001984126982935918, 2.755731353878816e-06),
        *(-2.5050734436872315e-08, 1.5895436224480687e-10),
    ),
    cos=(
        *(0.041666666666666595, -0.0013888888888873338, 2.480158728899746e-05, -2.755731421529149e-07),
        *(2.0875705113724585e-09, -1.1358732699140544e-11),
    ),
    tan=(
        *(0.33333333333332776, 0.13333333333414824, 0.05396825392657167, 0.021869489611339155),
        *(0.008863219130812847, 0.003592289385659882, 0.001454756068218695, 0.0005950728814098212),
        *(0.00022235543059772098, 0.00013657638420309665, -2.6458525986419513e-05),
        *(8.951937311203611e-05, -4.491300137080766e-05, 2.0872078720061776e-05),
    ),
    erfc_exponent_first=0.1283791670955126,
    erfc_exponent=(
        *(-1.8010735710000643e-17, 0.6366197723675836, 0.1027726033017891, -0.019128447005077088),
        *(-0.00020919469476866155, 0.0016962063852367245, -0.0005901255505085467, 2.587859624159084e-05),
        *(6.449188102655728e-05, -2.972408488965219e-05, 3.407323417975257e-06, 2.8350719276153102e-06),
        *(-1.7414834923240403e-06, 3.3631679403079934e-07, 1.3721078362759125e-07, -1.4177574240071766e-07),
        *(6.573882022982946e-08, -2.0964304292389493e-08, 4.998111940231135e-09, -9.083017612817064e-10),
        *(1.2485277334367737e-10, -1.2612303119844548e-11, 8.846580968682529e-13, -3.851009317829415e-14),
        7.835268151077993e-16,
    ),
    exp_range=(-746.0, 710.0),
    exp2_range=(-1076.0, 1025.0),
    expm1_is_minus_one=38.0,
    tanh_is_one=22.0,
    erf_is_one=5.94,
)
"""The errors of the fits are below 1e-17, but those of `exp` and `exp2`, which are 2e-17."""


def coefficients(f: Floats) -> Coefficients:
    """Those of the format of `f`."""
    return SINGLE if f.format == BINARY32 else DOUBLE


def scale_exponent(f: Floats) -> int:
    """Added to an exponent from `-2 * bias` to `2 * bias + 2`, so that the halves of the sum are biased themselves."""
    return 2 * f.format.bias


def _scaled(f: Floats, value: SSAValue, rounded: SSAValue) -> SSAValue:
    """`value * 2**n`, where `n + 2 * bias` stands in the lowest bits of `rounded`."""
    if has_registers(f) or has_registers_of_doubles(f):
        return scaled(f, value, f.sub(rounded, f.number(f.format.rounding + scale_exponent(f))))
    first, second = _powers_of_two(f, rounded)
    return f.mul(f.mul(value, first), second)


def _powers_of_two(f: Floats, rounded: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Two factors of `2**n`, where `n + 2 * bias` stands in the lowest bits of `rounded`: n may be less than `-bias`.

    The upper bits of `rounded` are lost when the lowest ones go to where a float has its exponent.
    """
    bits, shift = f.bits(rounded), f.format.fraction
    halved = f.b.make(llvm.ShlOp, (bits, f.integer(shift - 1)), f.integers)
    first = f.b.make(llvm.AndOp, (halved, f.integer(f.format.infinity_bits)), f.integers)
    whole = f.b.make(llvm.ShlOp, (bits, f.integer(shift)), f.integers)
    return f.from_bits(first), f.from_bits(f.integers_op(llvm.SubOp, whole, first))


def exp(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x = 2**n * e**r` with `n` the nearest integer to `x / ln 2`."""
    x = f.clamp(x, *coefficients(f).exp_range)
    return tables.exp(f, x) if has_registers(f) else grown(f, *_exp_tail(f, x, scale_exponent(f)))


def grown(f: Floats, tail: SSAValue, rounded: SSAValue) -> SSAValue:
    """`(1 + tail) * 2**n`, where `n + 2 * bias` stands in the lowest bits of `rounded`."""
    if has_registers(f) or has_registers_of_doubles(f):
        return _scaled(f, f.add(tail, f.number(1.0)), rounded)
    first, second = _powers_of_two(f, rounded)
    return f.mul(f.fma(tail, first, first), second)


def _exp_tail(f: Floats, x: SSAValue, bias: int) -> tuple[SSAValue, SSAValue]:
    """`e**r - 1`, and a number with `n + bias` in its lowest bits."""
    known, (first, n, rounded) = coefficients(f), _reduced(f, x, bias)
    r = f.fma(n, f.number(-known.ln2_low), first)
    return f.fma(f.polynomial(r, known.exp), f.mul(r, r), r), rounded


def _reduced(f: Floats, x: SSAValue, bias: int) -> tuple[SSAValue, SSAValue, SSAValue]:
    """`x - n * ln2_high`, which is exact, n, and a number with `n + bias` in its lowest bits (Cody and Waite, 1980)."""
    offset = f.number(f.format.rounding + bias)
    rounded = f.fma(x, f.number(LOG2_E), offset)
    n = f.sub(rounded, offset)
    return f.fma(n, f.number(-coefficients(f).ln2_high), x), n, rounded


def expm1(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x - 1`, by its half, which is less than the greatest number wherever the result is one.

    Where `e**r - 1` is negative and the result as small as that, its errors count twice: r is exact with what it lacks,
    and is added before the rest.
    """
    known, bias = coefficients(f), f.format.bias - 1
    first, n, rounded = _reduced(f, f.clamp(x, -known.expm1_is_minus_one, known.exp_range[1]), bias)
    r = f.fma(n, f.number(-known.ln2_low), first)
    lost = f.fma(n, f.number(-known.ln2_low), f.sub(first, r))
    rest, scale = f.fma(f.polynomial(r, known.exp), f.mul(r, r), lost), _power_of_two(f, rounded)
    half = f.fma(scale, rest, f.fma(scale, r, f.sub(scale, f.number(0.5))))
    is_small = f.b.compare_floats("olt", f.magnitude(x), f.number(2.0 ** (-2 - f.format.fraction)))
    return f.b.select(is_small, x, f.add(half, half))


def tail_and_scale(f: Floats, x: SSAValue, bias: int) -> tuple[SSAValue, SSAValue]:
    """`e**r - 1`, and the number whose biased exponent is `n + bias`, that of a normal number."""
    tail, rounded = _exp_tail(f, x, bias)
    return tail, _power_of_two(f, rounded)


def _power_of_two(f: Floats, rounded: SSAValue) -> SSAValue:
    """The number whose biased exponent stands in the lowest bits of `rounded`."""
    return f.from_bits(f.b.make(llvm.ShlOp, (f.bits(rounded), f.integer(f.format.fraction)), f.integers))


def scaled_exp(f: Floats, x: SSAValue) -> SSAValue:
    """`e**x * 2**64` of f32, for x of at most 0: neither the power nor its factor is subnormal."""
    x = f.at_least(x, coefficients(f).exp_range[0])
    if has_registers(f):
        return tables.scaled_exp(f, x)
    tail, scale = tail_and_scale(f, x, 127 + 64)
    return f.fma(tail, scale, scale)


def exp2(f: Floats, x: SSAValue) -> SSAValue:
    """`2**x = 2**n * 2**r` with `n` the nearest integer."""
    known, offset = coefficients(f), f.number(f.format.rounding + scale_exponent(f))
    x = f.clamp(x, *known.exp2_range)
    rounded = f.add(x, offset)
    r = f.sub(x, f.sub(rounded, offset))
    return _scaled(f, f.fma(f.polynomial(r, known.exp2), r, f.number(1.0)), rounded)


def _half_exp(f: Floats, size: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Halves of `e**x` and of `e**-x`, for x that are not negative; that of a NaN is NaN."""
    power = grown(f, *_exp_tail(f, f.at_most(size, coefficients(f).exp_range[1] + 1.0), scale_exponent(f) - 1))
    return power, f.div(f.number(0.25), power)


def cosh(f: Floats, x: SSAValue) -> SSAValue:
    """`e**|x| / 2 + e**-|x| / 2`."""
    return f.add(*_half_exp(f, f.magnitude(x)))


def sinh(f: Floats, x: SSAValue) -> SSAValue:
    """A polynomial below 1, else `e**|x| / 2 - e**-|x| / 2`."""
    size, square = f.magnitude(x), f.mul(x, x)
    near = f.fma(f.mul(f.polynomial(square, coefficients(f).sinh), square), size, size)
    far = f.sub(*_half_exp(f, size))
    is_near = f.b.compare_floats("olt", size, f.number(1.0))
    return f.with_sign(f.b.select(is_near, near, far), x)


def tanh(f: Floats, x: SSAValue) -> SSAValue:
    """`(a + t) / (1 + a * t)` with `t = tanh r` and `a = tanh (n * ln 2 / 2)`.

    What the multiples of `ln 2` lack grows with n, but the share of it that is left falls as `2**-n`. The nearest f32
    is so near that they need no second part.
    """
    if has_registers(f):
        return tables.tanh(f, x)
    known, offset = coefficients(f), f.number(f.format.rounding + f.format.bias)
    size = f.at_most(f.magnitude(x), known.tanh_is_one)
    rounded = f.fma(size, f.number(-2.0 * LOG2_E), offset)
    n = f.sub(rounded, offset)
    high, low = known.half_ln2
    r = f.fma(n, f.number(high), size)
    square = f.mul(r, r)
    cube, more = f.mul(r, square), f.polynomial(square, known.tanh)
    t = f.add(f.fma(cube, more, f.mul(n, f.number(low))), r) if low else f.fma(cube, more, r)
    # `(less + more * t) / (more + less * t)` for `less = 1 - power` and `more = 1 + power`, where power is `2**-n`.
    # It is a number of few digits and a smaller quotient, so that the last sum is most of what is rounded. Around 0,
    # where n is 0, the first is 0 and the quotient t.
    power = _power_of_two(f, rounded)
    one = f.number(1.0)
    less, more = f.sub(one, power), f.add(one, power)
    first = f.at_least(f.fma(power, f.number(-1.5), one), 0.0)
    minus = f.sub(f.number(-0.0), first)
    rest = f.fma(f.fma(minus, less, more), t, f.fma(minus, more, less))
    return f.with_sign(f.add(first, f.div(rest, f.fma(less, t, more))), x)


def erf(f: Floats, x: SSAValue) -> SSAValue:
    """`1 - e**-g(x)`, where `g(x) / x` is nearly a polynomial."""
    if has_registers(f):
        return tables.erf(f, x)
    known = coefficients(f)
    size = f.at_most(f.magnitude(x), known.erf_is_one)
    rest = f.mul(f.polynomial(size, known.erfc_exponent), size)
    exponent = f.add(size, f.fma(size, f.number(known.erfc_exponent_first), rest))
    # `e**x - 1` for x whose power is a normal number, as exact as `x` near 0.
    tail, scale = tail_and_scale(f, f.sub(f.number(-0.0), exponent), f.format.bias)
    return f.with_sign(f.fma(scale, tail, f.sub(scale, f.number(1.0))), x)


EXPANSIONS: dict[str, Callable[[Floats, SSAValue], SSAValue]] = {
    "math.cosh": cosh,
    "math.erf": erf,
    "math.exp": exp,
    "math.exp2": exp2,
    "math.expm1": expm1,
    "math.sinh": sinh,
    "math.tanh": tanh,
}
"""Functions of one f32 or f64 that we compute ourselves, by the name of the op."""
