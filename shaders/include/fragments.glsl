// Products of the left tile in shared memory and a right operand in fragments (`halite_ops::fragments`), which goes from memory straight
// to registers: RING steps of 16 terms are on their way. STAGES and AHEAD are 1, matrices are 16x16x16, subgroups have 32 invocations, and K
// and N are multiples of 16.
//
// A matrix is made of an invocation's eight elements where devices have them in the order of fragments, which the kernel finds out by
// loading a matrix of positions. Elsewhere its elements go to their places in a piece of shared memory, from where it is loaded.
#define RIGHT coopmat<OPERAND, gl_ScopeSubgroup, MK, MN, gl_MatrixUseB>

uvec4 ahead[RING * ACROSS];
// Terms from a turn of a team to its next one.
const uint TURN = SLICES * BK;
// The first word of the subgroup's first columns, and whether the order of elements is another one.
uint fragments_at;
shared uint has_other_order;

// Words of the subgroup's j-th columns at a step of 16 terms. Those behind the last one are read at the edge, and not used.
uvec4 fragment(uint step, uint j) {
    const uint steps = K / 16, columns = N / 16;
    const uint at = WHOLE ? fragments_at / 16 + j : min(fragments_at / 16 + j, columns - 1);
    return rhs[rhs_base + (at * steps + min(step, steps - 1)) * 32 + gl_SubgroupInvocationID];
}

// Reads the first steps.
void first_fragments(uint k0, uint column) {
    fragments_at = column;
    [[unroll]] for (uint s = 0; s < RING; ++s)
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) ahead[s * ACROSS + j] = fragment(k0 / 16 + s, j);
}

// Finds out the order of elements, with shared memory that nothing is in yet. Ends behind a barrier.
void find_order() {
    const uint own = gl_LocalInvocationIndex;
    if (own == 0) has_other_order = 0;
    if (own < 32) {
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            const float first = float(own * 8 + i * 2);
            shared_words[own][i] = packFloat2x16(f16vec2(first, first + 1.0));
        }
    }
    barrier();
    RIGHT positions;
    coopMatLoad(positions, shared_words, 0, 2, gl_CooperativeMatrixLayoutColumnMajor);
    bool same = positions.length() == 8;
    [[unroll]] for (uint e = 0; e < 8; ++e) {
        const uint term = gl_SubgroupInvocationID % 4 * 2 + (e & 1) + (e & 2) * 4;
        const uint column = gl_SubgroupInvocationID / 4 + (e & 4) * 2;
        same = same && float(positions[e]) == float(column * 16 + term);
    }
    if (!same) atomicOr(has_other_order, 1u);
    barrier();
}

// The matrix of a fragment.
RIGHT direct(uvec4 words) {
    RIGHT right;
    [[unroll]] for (uint e = 0; e < 8; ++e) right[e] = unpackFloat2x16(words[e / 2])[e & 1];
    return right;
}

// The same where elements have another order, by a piece of shared memory behind the tile.
RIGHT placed(uvec4 words) {
    const uint piece = SLICES * TILE + gl_SubgroupID * 32, l = gl_SubgroupInvocationID;
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const uint pair = l % 4 + (i & 1) * 4, column = l / 4 + (i & 2) * 4;
        shared_words[piece + column * 2 + pair / 4][pair % 4] = words[i];
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    RIGHT right;
    coopMatLoad(right, shared_words, piece, 2, gl_CooperativeMatrixLayoutColumnMajor);
    return right;
}

// Adds the products of 16 terms of the tile, which begin at `k`, with the subgroup's j-th columns.
#define LOAD_LEFT(k)                                                                                                          \
    coopmat<OPERAND, gl_ScopeSubgroup, MM, MK, gl_MatrixUseA> left[DOWN];                                                     \
    [[unroll]] for (uint i = 0; i < DOWN; ++i)                                                                                \
        coopMatLoad(left[i], shared_words, tiles + (my_row + i * MM) * LHS_ROW + (k) / PACK, LHS_ROW,                         \
                    gl_CooperativeMatrixLayoutRowMajor);
#define ADD_PRODUCTS(j, right)                                                                                                \
    [[unroll]] for (uint i = 0; i < DOWN; ++i) sums[i * ACROSS + j] = coopMatMulAdd(left[i], right, sums[i * ACROSS + j]);

// Adds the products of the tile that begins at `k0`, and reads later steps.
void multiply(uint my_row, uint k0) {
    [[unroll]] for (uint s = 0; s < BK / 16; ++s) {
        if (!EVEN_K && k0 + s * 16 >= K) break;
        LOAD_LEFT(s * 16)
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
            const uint slot = s % RING * ACROSS + j;
            RIGHT right = direct(ahead[slot]);
            ADD_PRODUCTS(j, right)
            const uint later = s + RING;
            ahead[slot] = fragment(k0 / 16 + later + (later < BK / 16 ? 0 : TURN / 16 - BK / 16), j);
        }
    }
}

// The same where elements have another order.
void multiply_placed(uint my_row, uint k0) {
    for (uint k = 0; k < BK && k0 + k < K; k += 16) {
        LOAD_LEFT(k)
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
            RIGHT right = placed(fragment((k0 + k) / 16, j));
            ADD_PRODUCTS(j, right)
        }
    }
}

// Whether each tile is kept once, since rows are added up meanwhile.
#ifdef NORMALIZES
const bool ONCE = ADDS_ROWS;
#else
const bool ONCE = false;
#endif

// Adds all products of a team, whose first tile begins at `begin` and would be the workgroup's at `first`. Behind the last tile it is
// read again, which costs less than conditions do; only sums of rows take each tile once. Teams of several subgroups take as many turns, since they meet.
void multiply_all(uint first, uint begin, uint end, uint my_row, uint my_column) {
    // A team without a turn has the first tile, and does not use it.
    const uint mine = SLICES == 1 || begin < end ? begin : first;
    fetch(mine, 0);
    first_fragments(mine, column0 + my_column);
#ifdef SUMS_OF_ROWS
    if (NORMALIZED && SUMS_GIVEN) take_moments();
#endif
    find_order();
    keep(mine, 0, 0);
    meet();
    if (has_other_order != 0) {
        for (uint k0 = begin; first < end; k0 += TURN, first += TURN) {
            multiply_placed(my_row, k0);
            meet();
            if (k0 + TURN < end) {
                fetch(k0 + TURN, 0);
                keep(k0 + TURN, 0, 0);
            }
            meet();
        }
        return;
    }
    for (uint k0 = begin; first < end; k0 += TURN, first += TURN) {
        const uint next = k0 + TURN < end ? k0 + TURN : SLICES == 1 ? k0 : first;
        fetch(next, 0);
        if (SLICES == 1 || k0 < end) multiply(my_row, k0);
        meet();
        if (!ONCE || next != k0) keep(next, 0, 0);
        meet();
    }
}
