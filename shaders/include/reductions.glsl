// What reductions compute of elements, one or four at a time. A template defines ACC, the type that they are summed in, with
// INTEGER and UNSIGNED where it is one, and has the push constant `total`: the number of elements of a line.

#ifndef REDUCTIONS_GLSL
#define REDUCTIONS_GLSL

#include "special.glsl"

layout(constant_id = 3) const uint KIND = 0;
layout(constant_id = 4) const bool FIRST = true;
layout(constant_id = 5) const bool LAST = true;

const uint SUM = 0, MEAN = 1, SUM_SQUARE = 2, L1 = 3, L2 = 4, LOG_SUM = 5, PROD = 6, MAX = 7, MIN = 8;

#define ONE CONCAT(REGISTER_, ACC)
#define FOUR CONCAT(QUAD_REGISTER_, ACC)

// Minima are maxima of what has the opposite order.
#ifdef INTEGER
#ifdef UNSIGNED
#define LEAST 0u
#define MAGNITUDE(v) (v)
#else
#define LEAST int(0x80000000u)
#define MAGNITUDE(v) abs(v)
#endif
#define OPPOSITE(v) (~(v))
#define LARGER(a, b) max(a, b)
#else
#define LEAST (-INFINITY)
#define MAGNITUDE(v) abs(v)
#define OPPOSITE(v) (-(v))
#define LARGER(a, b) max_or_nan(a, b)
#endif

ONE identity() {
    if (KIND == PROD) return ONE(1);
    return KIND == MAX || KIND == MIN ? LEAST : ONE(0);
}

FOUR combine(FOUR a, FOUR b) {
    if (KIND == PROD) return a * b;
    if (KIND == MAX || KIND == MIN) return LARGER(a, b);
    return a + b;
}

ONE combine(ONE a, ONE b) {
    return combine(FOUR(a), FOUR(b)).x;
}

// What is summed up for an element. What is not there counts as nothing.
FOUR term(FOUR v) {
    if (!FIRST) return v;
    if (KIND == SUM_SQUARE || KIND == L2) return v * v;
    if (KIND == L1) return MAGNITUDE(v);
    return KIND == MIN ? OPPOSITE(v) : v;
}

ONE fill() {
    if (!FIRST || KIND != MIN) return identity();
    return OPPOSITE(identity());
}

ONE finished(ONE v) {
    if (!LAST) return v;
    if (KIND == MIN) return OPPOSITE(v);
#ifndef INTEGER
    if (KIND == MEAN) return total == 0u ? NAN : v / float(total);
    if (KIND == L2) return is_finite(v) ? sqrt(v) : v;
    if (KIND == LOG_SUM) return log_of(v);
#endif
    return v;
}

#endif
