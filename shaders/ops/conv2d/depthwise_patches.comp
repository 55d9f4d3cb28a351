// A convolution whose groups have one channel each, with a kernel of 3 x 3 and no dilation, channels before rows: an
// invocation computes a patch of results (patches.glsl) of one filter, which a workgroup shares. For devices that run on a
// CPU: these read for each invocation apart, and divide one after the other.
#version 450
#define DEPTHWISE
#extension GL_GOOGLE_include_directive : require
#include "exchange.glsl"
#include "patches.glsl"
#include "limits.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint LEAST = 0xFF800000;
layout(constant_id = 4) const uint MOST = 0x7F800000;
// Whether rows of results are whole quads; kernels with WHOLE_ROWS write these at once.
layout(constant_id = 5) const bool QUADS = false;

#ifdef WHOLE_ROWS
QUAD_BUFFER(3, result4, , OUT);
#endif

// The weights, read by one invocation of a subgroup each.
#if SUBGROUP == 8
#define FIND_WEIGHTS const SUM held0 = weight_at(weight + lane), held1 = weight_at(weight + 8);
#define GIVEN(t) FROM_INVOCATION(held0, t)
#define LAST held1
#elif SUBGROUP == 4
#define FIND_WEIGHTS \
    const SUM held0 = weight_at(weight + lane), held1 = weight_at(weight + 4 + lane), held2 = weight_at(weight + 8);
#define GIVEN(t) FROM_INVOCATION(t < 4 ? held0 : held1, t % 4)
#define LAST held2
#endif

void main() {
    const uint filter_index = gl_WorkGroupID.y, image = gl_WorkGroupID.z, group = filter_index / filters;
    const Patch place = patch_of(gl_GlobalInvocationID.x);
    const uint base = image * data_image + group * data_channel;
    EACH_COLUMN(FIND_COLUMN)
    EACH_READ(FIND_ROW)
    const uint weight = filter_index * 9, lane = gl_SubgroupInvocationID % SUBGROUP;
    FIND_WEIGHTS
    const SUM g0 = GIVEN(0), g1 = GIVEN(1), g2 = GIVEN(2), g3 = GIVEN(3);
    const SUM g4 = GIVEN(4), g5 = GIVEN(5), g6 = GIVEN(6), g7 = GIVEN(7), g8 = LAST;
    // There is always something to read: without a bias, its buffer is that of the weights.
    const SUM added = SUM(CONCAT(LOAD_, BIAS)(bias, filter_index));
    const ROW_OF start = ROW_OF(HAS_BIAS ? added : SUM(0));

    EACH_READ(READ_ROW)
#define MULTIPLY(a, b, r, p, q, s) const ROW_OF sum##r = limited(NINE(p, q, s, start), LEAST, MOST);
    EACH_RESULT(MULTIPLY, 0, 0)

    const uint rows = place.valid ? out_height - place.row : 0;
    const uint to = image * result_image + filter_index * result_channel + place.row * out_width + place.column;
#ifdef WHOLE_ROWS
#define STORE(a, b, r, p, q, s) \
    if (r < rows) { \
        if (QUADS) CONCAT(STORE4_, OUT)(result4, (to + r * out_width) / 4, sum##r); \
        else store_row(to + r * out_width, place.column, sum##r); \
    }
#else
#define STORE(a, b, r, p, q, s) if (r < rows) store_row(to + r * out_width, place.column, sum##r);
#endif
    EACH_RESULT(STORE, 0, 0)
}
