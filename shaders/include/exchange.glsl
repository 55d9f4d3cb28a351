// What one invocation of a subgroup has, given to all of it. Included first: it enables extensions. SUBGROUP is the size
// of subgroups that a kernel runs with. llvmpipe (8) shuffles in one instruction, and takes fourteen cycles for a
// broadcast, as it looks for the first active invocation each time; SwiftShader (4) copies for a broadcast and shuffles
// invocation by invocation.

#ifndef EXCHANGE_GLSL
#define EXCHANGE_GLSL

#if SUBGROUP == 8
#extension GL_KHR_shader_subgroup_shuffle : require
#define FROM_INVOCATION(value, i) subgroupShuffle(value, i)
#else
#extension GL_KHR_shader_subgroup_ballot : require
#define FROM_INVOCATION(value, i) subgroupBroadcast(value, i)
#endif

#endif
