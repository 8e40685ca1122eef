/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The functions of <math.h> and <complex.h> that loop expressions may call, type-generic as in <tgmath.h>.
 * That header is not used, because it differs between C libraries: musl's macros repeat their argument so
 * often that three nested calls keep the preprocessor busy for minutes. The macros here repeat it twice and
 * expand to the same calls, and compile to the same code, as glibc's.
 *
 * An argument of a type that is not listed is a compile error: integers, which <tgmath.h> treats as double,
 * must be converted explicitly. Functions of two arguments are computed in the type of their sum. A
 * parenthesised name, as in (exp) (x), is the function for double; so is cabs, which <tgmath.h> calls fabs
 * and which the row kernels compute in double. */

#include <complex.h>
#include <math.h>

#define GTORCH_MATH(x, ...)      _Generic((x), __VA_ARGS__) (x)
#define GTORCH_MATH_2(x, y, ...) _Generic((x) + (y), __VA_ARGS__) (x, y)

/* clang-format off */
#define GTORCH_MATH_REAL(name)    float : name##f, double : name
#define GTORCH_MATH_COMPLEX(name) float _Complex : name##f, double _Complex : name
#define GTORCH_MATH_BOTH(name)    GTORCH_MATH_REAL (name), GTORCH_MATH_COMPLEX (c##name)
/* clang-format on */

/* C libraries may define macros of the same names. */
#undef acos
#undef acosh
#undef asin
#undef asinh
#undef atan
#undef atan2
#undef atanh
#undef cbrt
#undef ceil
#undef cimag
#undef conj
#undef copysign
#undef cos
#undef cosh
#undef creal
#undef erf
#undef erfc
#undef exp
#undef exp2
#undef expm1
#undef fabs
#undef floor
#undef fmax
#undef fmin
#undef fmod
#undef hypot
#undef lgamma
#undef log
#undef log10
#undef log1p
#undef log2
#undef nearbyint
#undef nextafter
#undef pow
#undef sin
#undef sinh
#undef sqrt
#undef tan
#undef tanh
#undef trunc

#define cbrt(x)      GTORCH_MATH (x, GTORCH_MATH_REAL (cbrt))
#define ceil(x)      GTORCH_MATH (x, GTORCH_MATH_REAL (ceil))
#define erf(x)       GTORCH_MATH (x, GTORCH_MATH_REAL (erf))
#define erfc(x)      GTORCH_MATH (x, GTORCH_MATH_REAL (erfc))
#define exp2(x)      GTORCH_MATH (x, GTORCH_MATH_REAL (exp2))
#define expm1(x)     GTORCH_MATH (x, GTORCH_MATH_REAL (expm1))
#define fabs(x)      GTORCH_MATH (x, GTORCH_MATH_REAL (fabs))
#define floor(x)     GTORCH_MATH (x, GTORCH_MATH_REAL (floor))
#define lgamma(x)    GTORCH_MATH (x, GTORCH_MATH_REAL (lgamma))
#define log10(x)     GTORCH_MATH (x, GTORCH_MATH_REAL (log10))
#define log1p(x)     GTORCH_MATH (x, GTORCH_MATH_REAL (log1p))
#define log2(x)      GTORCH_MATH (x, GTORCH_MATH_REAL (log2))
#define nearbyint(x) GTORCH_MATH (x, GTORCH_MATH_REAL (nearbyint))
#define trunc(x)     GTORCH_MATH (x, GTORCH_MATH_REAL (trunc))

#define atan2(x, y)     GTORCH_MATH_2 (x, y, GTORCH_MATH_REAL (atan2))
#define copysign(x, y)  GTORCH_MATH_2 (x, y, GTORCH_MATH_REAL (copysign))
#define fmax(x, y)      GTORCH_MATH_2 (x, y, GTORCH_MATH_REAL (fmax))
#define fmin(x, y)      GTORCH_MATH_2 (x, y, GTORCH_MATH_REAL (fmin))
#define fmod(x, y)      GTORCH_MATH_2 (x, y, GTORCH_MATH_REAL (fmod))
#define hypot(x, y)     GTORCH_MATH_2 (x, y, GTORCH_MATH_REAL (hypot))
#define nextafter(x, y) GTORCH_MATH_2 (x, y, GTORCH_MATH_REAL (nextafter))

#define acos(x)   GTORCH_MATH (x, GTORCH_MATH_BOTH (acos))
#define acosh(x)  GTORCH_MATH (x, GTORCH_MATH_BOTH (acosh))
#define asin(x)   GTORCH_MATH (x, GTORCH_MATH_BOTH (asin))
#define asinh(x)  GTORCH_MATH (x, GTORCH_MATH_BOTH (asinh))
#define atan(x)   GTORCH_MATH (x, GTORCH_MATH_BOTH (atan))
#define atanh(x)  GTORCH_MATH (x, GTORCH_MATH_BOTH (atanh))
#define cos(x)    GTORCH_MATH (x, GTORCH_MATH_BOTH (cos))
#define cosh(x)   GTORCH_MATH (x, GTORCH_MATH_BOTH (cosh))
#define exp(x)    GTORCH_MATH (x, GTORCH_MATH_BOTH (exp))
#define log(x)    GTORCH_MATH (x, GTORCH_MATH_BOTH (log))
#define sin(x)    GTORCH_MATH (x, GTORCH_MATH_BOTH (sin))
#define sinh(x)   GTORCH_MATH (x, GTORCH_MATH_BOTH (sinh))
#define sqrt(x)   GTORCH_MATH (x, GTORCH_MATH_BOTH (sqrt))
#define tan(x)    GTORCH_MATH (x, GTORCH_MATH_BOTH (tan))
#define tanh(x)   GTORCH_MATH (x, GTORCH_MATH_BOTH (tanh))
#define pow(x, y) GTORCH_MATH_2 (x, y, GTORCH_MATH_BOTH (pow))

#define cimag(x) GTORCH_MATH (x, GTORCH_MATH_COMPLEX (cimag))
#define conj(x)  GTORCH_MATH (x, GTORCH_MATH_COMPLEX (conj))
#define creal(x) GTORCH_MATH (x, GTORCH_MATH_COMPLEX (creal))
