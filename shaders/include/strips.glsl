// The end of products with 16-bit results in whole octets: a subgroup stores its matrices one row of them after the other, through a
// piece of shared memory of its own, so that no subgroup waits for others. SLICES and PARTS are 1.

// Invocations of a subgroup, octets of a row, 16-byte words of a row in shared memory, and octets of an invocation in a strip.
const uint WAVE = LANES / MEMBERS, OCTETS = WN / 8, STRIP_ROW = WN / 4 + 1;
const uint PASSES = (MM * OCTETS + WAVE - 1) / WAVE;
// Whether all octets of an invocation lie in the same columns.
const bool SAME_COLUMNS = WAVE % OCTETS == 0;

uvec4 strip_residual[PASSES];
uvec4 strip_bias, strip_sums;

// The row in the workgroup and the column of the octet of an invocation in a pass of the strip at `row`.
uvec2 octet_place(uint row, uint my_column, uint pass) {
    const uint at = pass * WAVE + gl_SubgroupInvocationID;
    return uvec2(row0 + row + at / OCTETS, column0 + my_column + at % OCTETS * 8);
}

// The same at the edge for what lies outside, which is read and not used.
uvec2 octet_inside(uint row, uint my_column, uint pass) {
    const uvec2 place = octet_place(row, my_column, pass);
    return WHOLE ? place : min(place, uvec2(M - 1, N - 8));
}

// Reads what is added to the columns of an octet.
void fetch_columns(uint my_column, uint pass) {
    const uint column = octet_inside(0, my_column, pass).y;
    if (HAS_BIAS) strip_bias = bias_octets[(bias_base + column) / 8];
#ifdef NORMALIZES
    if (NORMALIZED) strip_sums = bias_octets[(N + column) / 8];
#endif
}

// Reads the residual of the strip at `row`.
void fetch_residual(uint row, uint my_column) {
    [[unroll]] for (uint pass = 0; pass < PASSES; ++pass) {
        const uvec2 place = octet_inside(row, my_column, pass);
        strip_residual[pass] = residual_octets[(out_base + place.x * PITCH + place.y) / 8];
    }
}

// What becomes of four neighbouring sums; `h` is their half of the octet.
vec4 finished(vec4 sum, uint h, uvec4 added, vec2 moment, float row_bias) {
#ifdef NORMALIZES
    if (NORMALIZED) sum = (sum - moment.x * unpacked(h == 0 ? strip_sums.xy : strip_sums.zw)) * moment.y;
#endif
    if (HAS_BIAS) sum += unpacked(h == 0 ? strip_bias.xy : strip_bias.zw);
    if (HAS_ROW_BIAS) sum += row_bias;
    const vec4 residual = HAS_RESIDUAL ? unpacked(h == 0 ? added.xy : added.zw) : vec4(0.0);
    if (HAS_RESIDUAL && !RESIDUAL_BEHIND) sum += residual;
    sum = activate(sum, ACTIVATION);
    return HAS_RESIDUAL && RESIDUAL_BEHIND ? sum + residual : sum;
}

#ifdef SUMS_OF_ROWS
// Stores sums of the octets of two neighbouring invocations, which are SUMMED columns of a row.
void leave_sums(uvec2 place, vec4 first, vec4 second) {
    const vec4 halves = first + second;
    const float sum = subgroupClusteredAdd((halves.x + halves.y) + (halves.z + halves.w), 2);
    const float square = subgroupClusteredAdd(dot(first, first) + dot(second, second), 2);
    const uint row = gl_WorkGroupID.z * M + place.x;
    if (place.y % SUMMED == 0) sums_of_rows[place.y / SUMMED * (batches * M) + row] = vec2(sum, square);
}
#endif

// Stores the octet of an invocation in a pass of a strip.
void store_octet(uint row, uint my_column, uint pass, uint at) {
    const uvec2 place = octet_place(row, my_column, pass);
    if (!WHOLE && (place.x >= M || place.y >= N)) return;
    if (!SAME_COLUMNS) fetch_columns(my_column, pass);
    vec2 moment = vec2(0.0);
#ifdef NORMALIZES
    if (NORMALIZED) moment = moments[place.x - row0];
#endif
    const float row_bias = HAS_ROW_BIAS ? float(bias_elements[place.x]) : 0.0;
    const vec4 first = finished(unpacked(shared_words[at]), 0, strip_residual[pass], moment, row_bias);
    const vec4 second = finished(unpacked(shared_words[at + 1]), 1, strip_residual[pass], moment, row_bias);
    const uvec4 words = uvec4(packed(first), packed(second));
    result_octets[out_place(place, out_base + place.x * PITCH + place.y) / 8] = words;
#ifdef SUMS_OF_ROWS
    if (LEAVES_SUMS) leave_sums(place, unpacked(words.xy), unpacked(words.zw));
#endif
}

void meet_in_subgroup() {
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
}

void finish_strips(uint my_row, uint my_column) {
    const uint piece = gl_SubgroupID * MM * STRIP_ROW;
    if (SAME_COLUMNS) fetch_columns(my_column, 0);
    if (HAS_RESIDUAL) fetch_residual(my_row, my_column);
    // What tiles left in shared memory has been read.
    barrier();
    [[unroll]] for (uint i = 0; i < DOWN; ++i) {
        const uint row = my_row + i * MM;
        [[unroll]] for (uint j = 0; j < ACROSS; ++j)
            coopMatStore(sums[i * ACROSS + j], shared_words, piece + j * MN / 4, STRIP_ROW, gl_CooperativeMatrixLayoutRowMajor);
        meet_in_subgroup();
        [[unroll]] for (uint pass = 0; pass < PASSES; ++pass) {
            const uint at = pass * WAVE + gl_SubgroupInvocationID;
            if (MM * OCTETS % WAVE != 0 && at >= MM * OCTETS) break;
            store_octet(row, my_column, pass, piece + at / OCTETS * STRIP_ROW + at % OCTETS * 2);
        }
        if (i + 1 < DOWN && HAS_RESIDUAL) fetch_residual(row + MM, my_column);
        meet_in_subgroup();
    }
}
