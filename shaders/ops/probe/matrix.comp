// Products of cooperative matrices in registers and nothing else: four independent sums in each subgroup, ROUNDS * 4 products
// in all.
#version 450
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROUNDS = 64;
layout(constant_id = 2) const uint M = 16;
layout(constant_id = 3) const uint N = 16;
layout(constant_id = 4) const uint K = 16;

layout(set = 0, binding = 0) writeonly buffer Out { SUM result[]; };

layout(push_constant) uniform Factors {
    uint left_bits, right_bits;  // The bits of two floats, or two integers.
};

#ifdef INTEGERS
#define FROM(bits) OPERAND(int(bits))
#else
#define FROM(bits) OPERAND(uintBitsToFloat(bits))
#endif

#define MATRIX_A coopmat<OPERAND, gl_ScopeSubgroup, M, K, gl_MatrixUseA>
#define MATRIX_B coopmat<OPERAND, gl_ScopeSubgroup, K, N, gl_MatrixUseB>
#define MATRIX_C coopmat<SUM, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>

void main() {
    const MATRIX_A left = MATRIX_A(FROM(left_bits));
    const MATRIX_B right = MATRIX_B(FROM(right_bits));
    MATRIX_C a = MATRIX_C(SUM(0)), b = MATRIX_C(SUM(1)), c = MATRIX_C(SUM(2)), d = MATRIX_C(SUM(3));
    for (uint i = 0; i < ROUNDS; ++i) {
        a = coopMatMulAdd(left, right, a);
        b = coopMatMulAdd(left, right, b);
        c = coopMatMulAdd(left, right, c);
        d = coopMatMulAdd(left, right, d);
    }
    const uint place = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID;
    coopMatStore(a + b + c + d, result, place * M * N, N, gl_CooperativeMatrixLayoutRowMajor);
}
