// out = lhs * weights for few rows of lhs, with weights in blocks: SPAN neighbouring invocations share the sums of COLUMNS
// columns. Four of them share a chunk of 32 of the inner dimension, so that neighbours read neighbouring words of weights and of
// activations; reads of several chunks are under way at once.
//
// NORMED: a row is divided by the root of the mean of its squares, which every team adds up beside its sums, and multiplied by a
// scale. GATED: the result is function(sum with a row of weights) * (sum with the row N behind it).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SPAN = 32;  // A power of two, at least 4.
layout(constant_id = 2) const uint ROWS = 1;   // Rows of lhs, up to 8.
layout(constant_id = 3) const uint COLUMNS = 2;
layout(constant_id = 4) const uint ADDED = 0;
layout(constant_id = 5) const uint ACTIVATION = 0;
layout(constant_id = 6) const bool NORMED = false;
layout(constant_id = 7) const bool GATED = false;
layout(constant_id = 8) const uint AHEAD = 4;  // Chunks that an invocation has a part of at once.

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };
layout(set = 0, binding = 5) readonly buffer Scale { vec4 scales[]; };

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;    // In a row of k.
    float epsilon;  // Added to the mean of squares.
};

#define BLOCKS_SLOT 1
#define BLOCK_SHARE 1
#include "blocks.glsl"
#include "block_product.glsl"

// Rows of weights that a team reads, and its sums: with the squares of each row of lhs at the end.
const uint READ = COLUMNS * (GATED ? 2 : 1), SUMS = ROWS * READ + (NORMED ? ROWS : 0);

shared float partial[SUMS * gl_WorkGroupSize.x];

float four(vec4 terms) {
    return (terms.x + terms.y) + (terms.z + terms.w);
}

void main() {
    const uint me = gl_LocalInvocationIndex, lane = me % SPAN, share = lane % 4;
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint column0 = (group * (gl_WorkGroupSize.x / SPAN) + me / SPAN) * COLUMNS;
    uint rows[READ];
    [[unroll]] for (uint c = 0; c < READ; ++c)
        rows[c] = (min(column0 + c % COLUMNS, N - 1) + c / COLUMNS * N) * ROW_BYTES(chunks);

    float sums[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = 0.0;
    const uint step = SPAN / 4;
    for (uint first = lane / 4; first < chunks; first += step * AHEAD) {
        vec4 low[READ * AHEAD], high[READ * AHEAD];
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            // What lies behind the row is read at its end and not counted: a read behind a branch waits for the one before.
            const uint chunk = min(first + a * step, chunks - 1);
            [[unroll]] for (uint c = 0; c < READ; ++c)
                load_pair(rows[c], chunk, share, low[a * READ + c], high[a * READ + c]);
        }
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            const uint chunk = min(first + a * step, chunks - 1);
            const bool counts = first + a * step < chunks;
            const uint at = chunk * 8 + low_quad(share), next = chunk * 8 + high_quad(share);
            vec4 scale, next_scale;
            if (NORMED) {
                scale = scales[at];
                next_scale = scales[next];
            }
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                vec4 left = lhs[r * chunks * 8 + at], right = lhs[r * chunks * 8 + next];
                if (NORMED) {
                    const float squares = four(left * left + right * right);
                    sums[ROWS * READ + r] += counts ? squares : 0.0;
                    left *= scale;
                    right *= next_scale;
                }
                [[unroll]] for (uint c = 0; c < READ; ++c) {
                    const float terms = four(left * low[a * READ + c] + right * high[a * READ + c]);
                    sums[r * READ + c] += counts ? terms : 0.0;
                }
            }
        }
    }

    [[unroll]] for (uint i = 0; i < SUMS; ++i) partial[i * gl_WorkGroupSize.x + me] = sums[i];
    for (uint rest = SPAN / 2; rest > 0; rest /= 2) {
        barrier();
        if (lane < rest) {
            [[unroll]] for (uint i = 0; i < SUMS; ++i)
                partial[i * gl_WorkGroupSize.x + me] += partial[i * gl_WorkGroupSize.x + me + rest];
        }
    }
    barrier();
    // A result for each of the team's first invocations.
    for (uint i = lane; i < ROWS * COLUMNS; i += SPAN) {
        const uint r = i / COLUMNS, c = i % COLUMNS, column = column0 + c, at = r * N + column;
        if (column >= N) continue;
        const uint own = me - lane;
        float sum = partial[(r * READ + c) * gl_WorkGroupSize.x + own], factor = 1.0;
        if (NORMED) {
            const float squares = partial[(SUMS - ROWS + r) * gl_WorkGroupSize.x + own];
            factor = inversesqrt(squares / float(chunks * 32) + epsilon);
            sum *= factor;
        }
        if (GATED) {
            const float other = factor * partial[(r * READ + (GATED ? COLUMNS : 0) + c) * gl_WorkGroupSize.x + own];
            result[at] = activate(sum, ACTIVATION) * other;
        } else {
            result[at] = finished(at, column, sum);
        }
    }
}
