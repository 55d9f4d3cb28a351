"""Writes scale.spv: y[i] = x[i] * k + offset, for workgroups of four invocations.

Bindings 0 (x, NonWritable) and 1 (y) of set 0 are storage buffers of floats, k is specialization constant 1 (default 2.0), offset is
the one push constant. Run it in this folder; the file is kept beside it.
"""

import struct

words = []


def op(code, *operands):
    flat = []
    for operand in operands:
        if isinstance(operand, str):
            text = operand.encode() + b"\0"
            text += b"\0" * (-len(text) % 4)
            flat += struct.unpack(f"<{len(text) // 4}I", text)
        else:
            flat.append(operand)
    words.append((len(flat) + 1) << 16 | code)
    words.extend(flat)


names = (
    "main void fn u32 f32 v3u array block to_block to_float to_gid to_u32 constants to_constants to_constant "
    "zero k x y gid push label at_gid i at_x xi scaled at_push offset sum at_y"
).split()
ids = {name: number + 1 for number, name in enumerate(names)}
get = ids.__getitem__
two = struct.unpack("<I", struct.pack("<f", 2.0))[0]

op(17, 1)  # OpCapability Shader
op(14, 0, 1)  # OpMemoryModel Logical GLSL450
op(15, 5, get("main"), "scale", get("gid"))  # OpEntryPoint GLCompute
op(16, get("main"), 17, 4, 1, 1)  # OpExecutionMode LocalSize
op(71, get("gid"), 11, 28)  # BuiltIn GlobalInvocationId
op(71, get("array"), 6, 4)  # ArrayStride
for block in ("block", "constants"):
    op(71, get(block), 2)  # Block
    op(72, get(block), 0, 35, 0)  # Offset
for binding, name in enumerate(("x", "y")):
    op(71, get(name), 34, 0)  # DescriptorSet
    op(71, get(name), 33, binding)  # Binding
op(71, get("x"), 24)  # NonWritable
op(71, get("k"), 1, 1)  # SpecId
op(19, get("void"))
op(33, get("fn"), get("void"))
op(21, get("u32"), 32, 0)
op(22, get("f32"), 32)
op(23, get("v3u"), get("u32"), 3)
op(29, get("array"), get("f32"))
op(30, get("block"), get("array"))
op(30, get("constants"), get("f32"))
for name, storage, target in (
    ("to_block", 12, "block"),
    ("to_float", 12, "f32"),
    ("to_gid", 1, "v3u"),
    ("to_u32", 1, "u32"),
    ("to_constants", 9, "constants"),
    ("to_constant", 9, "f32"),
):
    op(32, get(name), storage, get(target))  # OpTypePointer
op(43, get("u32"), get("zero"), 0)  # OpConstant
op(50, get("f32"), get("k"), two)  # OpSpecConstant
for name, pointer, storage in (("x", "to_block", 12), ("y", "to_block", 12), ("gid", "to_gid", 1), ("push", "to_constants", 9)):
    op(59, get(pointer), get(name), storage)  # OpVariable
op(54, get("void"), get("main"), 0, get("fn"))  # OpFunction
op(248, get("label"))
op(65, get("to_u32"), get("at_gid"), get("gid"), get("zero"))  # OpAccessChain
op(61, get("u32"), get("i"), get("at_gid"))  # OpLoad
op(65, get("to_float"), get("at_x"), get("x"), get("zero"), get("i"))
op(61, get("f32"), get("xi"), get("at_x"))
op(133, get("f32"), get("scaled"), get("xi"), get("k"))  # OpFMul
op(65, get("to_constant"), get("at_push"), get("push"), get("zero"))
op(61, get("f32"), get("offset"), get("at_push"))
op(129, get("f32"), get("sum"), get("scaled"), get("offset"))  # OpFAdd
op(65, get("to_float"), get("at_y"), get("y"), get("zero"), get("i"))
op(62, get("at_y"), get("sum"))  # OpStore
op(253)  # OpReturn
op(56)  # OpFunctionEnd

# SPIR-V 1.3, the version of Vulkan 1.1.
header = [0x07230203, 0x00010300, 0, len(names) + 1, 0]
with open("scale.spv", "wb") as out:
    out.write(struct.pack(f"<{len(header) + len(words)}I", *header, *words))
