// A dense result whose innermost dimension, b, is not that of the source, a: tiles go through shared memory, so that
// neighbours read and write neighbours. Elements of UNIT bytes (1, 2 or 4) move in blocks of PACK x PACK, which are PACK
// words in the source and in the result. Other dimensions, 4 at most, are a batch.
#version 450

// 128 invocations.
layout(local_size_x_id = 0) in;

#define PACK (4u / UNIT)
// Blocks along each side of a tile: the crate's `copy::tile`.
#if UNIT == 1
#define TILE 16u
#else
#define TILE 32u
#endif
// Rows of blocks that the workgroup takes at once.
#define ROWS (128u / TILE)

layout(set = 0, binding = 0, std430) restrict readonly buffer source_block { uint source[]; };
layout(set = 0, binding = 1, std430) restrict writeonly buffer result_block { uint result[]; };

layout(push_constant) uniform Shape {
    uint blocks_a, blocks_b, tiles_b;
    uint offset;           // In words, as all strides.
    uint source_stride;    // From an element along b to the next.
    uint result_stride;    // From an element along a to the next.
    uint batch_sizes[4];   // The innermost first; 1 where there is none.
    uint source_batch[4], result_batch[4];
};

shared uint tile[PACK * TILE * (TILE + 1u)];

// A place in the tile. No function, because checks of kernels that share memory do not follow calls.
#define SLOT(part, a, b) (((part) * TILE + (a)) * (TILE + 1u) + (b))

void main() {
    const uint column = gl_LocalInvocationID.x % TILE, row = gl_LocalInvocationID.x / TILE;
    const uint a0 = gl_WorkGroupID.x / tiles_b * TILE, b0 = gl_WorkGroupID.x % tiles_b * TILE;
    uint from = offset, to = 0u, rest = gl_WorkGroupID.y;
    for (uint d = 0u; d < 4u; ++d) {
        from += rest % batch_sizes[d] * source_batch[d];
        to += rest % batch_sizes[d] * result_batch[d];
        rest /= batch_sizes[d];
    }
    for (uint i = 0u; i < TILE / ROWS; ++i) {
        const uint r = row + i * ROWS, a = a0 + column, b = b0 + r;
        if (a < blocks_a && b < blocks_b) {
            uint read[PACK];
            for (uint k = 0u; k < PACK; ++k) read[k] = source[from + (b * PACK + k) * source_stride + a];
            for (uint part = 0u; part < PACK; ++part) {
#if UNIT == 4
                tile[SLOT(part, column, r)] = read[0];
#else
                uint word = 0u;
                for (uint k = 0u; k < PACK; ++k) {
                    word |= bitfieldExtract(read[k], int(8u * UNIT * part), 8 * UNIT) << (8u * UNIT * k);
                }
                tile[SLOT(part, column, r)] = word;
#endif
            }
        }
    }
    barrier();
    for (uint i = 0u; i < TILE / ROWS; ++i) {
        const uint r = row + i * ROWS, a = a0 + r, b = b0 + column;
        if (a < blocks_a && b < blocks_b) {
            for (uint part = 0u; part < PACK; ++part) {
                result[to + (a * PACK + part) * result_stride + b] = tile[SLOT(part, r, column)];
            }
        }
    }
}
