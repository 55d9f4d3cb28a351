//! The one table of the instruction set: set, number, name and operands of every operation. Decoder, verifier, disassembler and
//! assembler are driven by it.

use super::{OpInfo, OpSet, Operand};

macro_rules! isa {
    ($($set:ident { $($code:literal $name:ident $text:literal [$($operand:ident),*];)* })*) => {
        /// An operation of the VM.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Op { $($(
            #[doc = concat!("`", $text, "`.")]
            $name,
        )*)* }

        pub(super) const TABLE: &[OpInfo] = &[$($(OpInfo {
            op: Op::$name,
            set: OpSet::$set,
            code: $code,
            mnemonic: $text,
            operands: &[$(Operand::$operand),*],
        },)*)*];
    };
}

isa! {
    Core {
        0x00 GlobalLoadI32 "global.load.i32" [Global4, CellOut];
        0x01 GlobalStoreI32 "global.store.i32" [Global4, Cell];
        0x02 GlobalLoadIndirectI32 "global.load.indirect.i32" [Cell, CellOut];
        0x03 GlobalStoreIndirectI32 "global.store.indirect.i32" [Cell, Cell];
        0x04 GlobalLoadI64 "global.load.i64" [Global8, PairOut];
        0x05 GlobalStoreI64 "global.store.i64" [Global8, Pair];
        0x06 GlobalLoadIndirectI64 "global.load.indirect.i64" [Cell, PairOut];
        0x07 GlobalStoreIndirectI64 "global.store.indirect.i64" [Cell, Pair];
        0x08 GlobalLoadRef "global.load.ref" [GlobalRef, Type, RefOut];
        0x09 GlobalStoreRef "global.store.ref" [GlobalRef, Type, RefMove];
        0x0A GlobalLoadIndirectRef "global.load.indirect.ref" [Cell, Type, RefOut];
        0x0B GlobalStoreIndirectRef "global.store.indirect.ref" [Cell, Type, RefMove];
        0x0C ConstI32Zero "const.i32.zero" [CellOut];
        0x0D ConstI32 "const.i32" [Imm32, CellOut];
        0x0E ConstI64Zero "const.i64.zero" [PairOut];
        0x0F ConstI64 "const.i64" [Imm64, PairOut];
        0x10 ConstRefZero "const.ref.zero" [RefOut];
        0x11 ConstRefRodata "const.ref.rodata" [Rodata, RefOut];
        0x12 ListAlloc "list.alloc" [Type, Cell, RefOut];
        0x13 ListReserve "list.reserve" [Ref, Cell];
        0x14 ListSize "list.size" [Ref, CellOut];
        0x15 ListResize "list.resize" [Ref, Cell];
        0x16 ListGetI32 "list.get.i32" [Ref, Cell, CellOut];
        0x17 ListSetI32 "list.set.i32" [Ref, Cell, Cell];
        0x18 ListGetI64 "list.get.i64" [Ref, Cell, PairOut];
        0x19 ListSetI64 "list.set.i64" [Ref, Cell, Pair];
        0x1A ListGetRef "list.get.ref" [Ref, Cell, Type, RefOut];
        0x1B ListSetRef "list.set.ref" [Ref, Cell, RefMove];
        0x1C SelectI32 "select.i32" [Cell, Cell, Cell, CellOut];
        0x1D SelectI64 "select.i64" [Cell, Pair, Pair, PairOut];
        0x1E SelectRef "select.ref" [Cell, Type, RefMove, RefMove, RefOut];
        0x1F SwitchI32 "switch.i32" [Cell, Cell, Cells, CellOut];
        0x20 SwitchI64 "switch.i64" [Cell, Pair, Pairs, PairOut];
        0x21 SwitchRef "switch.ref" [Cell, Type, RefMove, Refs, RefOut];
        0x22 AddI32 "add.i32" [Cell, Cell, CellOut];
        0x23 SubI32 "sub.i32" [Cell, Cell, CellOut];
        0x24 MulI32 "mul.i32" [Cell, Cell, CellOut];
        0x25 DivI32S "div.i32.s" [Cell, Cell, CellOut];
        0x26 DivI32U "div.i32.u" [Cell, Cell, CellOut];
        0x27 RemI32S "rem.i32.s" [Cell, Cell, CellOut];
        0x28 RemI32U "rem.i32.u" [Cell, Cell, CellOut];
        0x29 FmaI32 "fma.i32" [Cell, Cell, Cell, CellOut];
        0x2A AddI64 "add.i64" [Pair, Pair, PairOut];
        0x2B SubI64 "sub.i64" [Pair, Pair, PairOut];
        0x2C MulI64 "mul.i64" [Pair, Pair, PairOut];
        0x2D DivI64S "div.i64.s" [Pair, Pair, PairOut];
        0x2E DivI64U "div.i64.u" [Pair, Pair, PairOut];
        0x2F RemI64S "rem.i64.s" [Pair, Pair, PairOut];
        0x30 RemI64U "rem.i64.u" [Pair, Pair, PairOut];
        0x31 FmaI64 "fma.i64" [Pair, Pair, Pair, PairOut];
        0x32 NotI32 "not.i32" [Cell, CellOut];
        0x33 AndI32 "and.i32" [Cell, Cell, CellOut];
        0x34 OrI32 "or.i32" [Cell, Cell, CellOut];
        0x35 XorI32 "xor.i32" [Cell, Cell, CellOut];
        0x36 NotI64 "not.i64" [Pair, PairOut];
        0x37 AndI64 "and.i64" [Pair, Pair, PairOut];
        0x38 OrI64 "or.i64" [Pair, Pair, PairOut];
        0x39 XorI64 "xor.i64" [Pair, Pair, PairOut];
        0x3A ShlI32 "shl.i32" [Cell, Cell, CellOut];
        0x3B ShrI32S "shr.i32.s" [Cell, Cell, CellOut];
        0x3C ShrI32U "shr.i32.u" [Cell, Cell, CellOut];
        0x3D ShlI64 "shl.i64" [Pair, Cell, PairOut];
        0x3E ShrI64S "shr.i64.s" [Pair, Cell, PairOut];
        0x3F ShrI64U "shr.i64.u" [Pair, Cell, PairOut];
        0x40 TruncI32I8 "trunc.i32.i8" [Cell, CellOut];
        0x41 TruncI32I16 "trunc.i32.i16" [Cell, CellOut];
        0x42 TruncI64I32 "trunc.i64.i32" [Pair, CellOut];
        0x43 ExtI8I32S "ext.i8.i32.s" [Cell, CellOut];
        0x44 ExtI8I32U "ext.i8.i32.u" [Cell, CellOut];
        0x45 ExtI16I32S "ext.i16.i32.s" [Cell, CellOut];
        0x46 ExtI16I32U "ext.i16.i32.u" [Cell, CellOut];
        0x47 ExtI32I64S "ext.i32.i64.s" [Cell, PairOut];
        0x48 ExtI32I64U "ext.i32.i64.u" [Cell, PairOut];
        0x49 CmpEqI32 "cmp.eq.i32" [Cell, Cell, CellOut];
        0x4A CmpNeI32 "cmp.ne.i32" [Cell, Cell, CellOut];
        0x4B CmpLtI32S "cmp.lt.i32.s" [Cell, Cell, CellOut];
        0x4C CmpLtI32U "cmp.lt.i32.u" [Cell, Cell, CellOut];
        0x4D CmpNzI32 "cmp.nz.i32" [Cell, CellOut];
        0x4E CmpEqI64 "cmp.eq.i64" [Pair, Pair, CellOut];
        0x4F CmpNeI64 "cmp.ne.i64" [Pair, Pair, CellOut];
        0x50 CmpLtI64S "cmp.lt.i64.s" [Pair, Pair, CellOut];
        0x51 CmpLtI64U "cmp.lt.i64.u" [Pair, Pair, CellOut];
        0x52 CmpNzI64 "cmp.nz.i64" [Pair, CellOut];
        0x53 CmpEqRef "cmp.eq.ref" [Ref, Ref, CellOut];
        0x54 CmpNeRef "cmp.ne.ref" [Ref, Ref, CellOut];
        0x55 CmpNzRef "cmp.nz.ref" [Ref, CellOut];
        0x56 Br "br" [Edge];
        0x57 CondBr "cond_br" [Cell, Edge, Edge];
        0x58 Call "call" [Function, Args, Results];
        0x59 CallVariadic "call.variadic" [Function, Segments, Args, Results];
        0x5A Return "return" [Returns];
        0x5B Fail "fail" [Cell, Text];
        0x5C ImportResolved "import.resolved" [Import, CellOut];
        0x5D Yield "yield" [Edge];
        0x5E Trace "trace" [Text, Any];
        0x5F Print "print" [Text, Any];
        0x60 CondBreak "cond_break" [Cell, Edge];
        0x61 Break "break" [Edge];
        0x62 BufferLoadI8U "buffer.load.i8.u" [Ref, Pair, CellOut];
        0x63 BufferLoadI8S "buffer.load.i8.s" [Ref, Pair, CellOut];
        0x64 BufferLoadI16U "buffer.load.i16.u" [Ref, Pair, CellOut];
        0x65 BufferLoadI16S "buffer.load.i16.s" [Ref, Pair, CellOut];
        0x66 BufferLoadI32 "buffer.load.i32" [Ref, Pair, CellOut];
        0x67 BufferLoadI64 "buffer.load.i64" [Ref, Pair, PairOut];
        0x68 BufferStoreI8 "buffer.store.i8" [Ref, Pair, Cell];
        0x69 BufferStoreI16 "buffer.store.i16" [Ref, Pair, Cell];
        0x6A BufferStoreI32 "buffer.store.i32" [Ref, Pair, Cell];
        0x6B BufferStoreI64 "buffer.store.i64" [Ref, Pair, Pair];
        0x6C BufferAlloc "buffer.alloc" [Pair, Cell, RefOut];
        0x6D BufferClone "buffer.clone" [Ref, Pair, Pair, Cell, RefOut];
        0x6E BufferLength "buffer.length" [Ref, PairOut];
        0x6F BufferCopy "buffer.copy" [Ref, Pair, Ref, Pair, Pair];
        0x70 BufferCompare "buffer.compare" [Ref, Pair, Ref, Pair, Pair, CellOut];
        0x71 BufferFillI8 "buffer.fill.i8" [Ref, Pair, Pair, Cell];
        0x72 BufferFillI16 "buffer.fill.i16" [Ref, Pair, Pair, Cell];
        0x73 BufferFillI32 "buffer.fill.i32" [Ref, Pair, Pair, Cell];
        0x74 BufferFillI64 "buffer.fill.i64" [Ref, Pair, Pair, Pair];
        0x75 CtlzI32 "ctlz.i32" [Cell, CellOut];
        0x76 CtlzI64 "ctlz.i64" [Pair, PairOut];
        0x77 AbsI32 "abs.i32" [Cell, CellOut];
        0x78 AbsI64 "abs.i64" [Pair, PairOut];
        0x79 Block "block" [];
        0x7A MinI32S "min.i32.s" [Cell, Cell, CellOut];
        0x7B MinI32U "min.i32.u" [Cell, Cell, CellOut];
        0x7C MaxI32S "max.i32.s" [Cell, Cell, CellOut];
        0x7D MaxI32U "max.i32.u" [Cell, Cell, CellOut];
        0x7E MinI64S "min.i64.s" [Pair, Pair, PairOut];
        0x7F MinI64U "min.i64.u" [Pair, Pair, PairOut];
        0x80 MaxI64S "max.i64.s" [Pair, Pair, PairOut];
        0x81 MaxI64U "max.i64.u" [Pair, Pair, PairOut];
        0x82 CastAnyRef "cast.any.ref" [RefMove, Type, RefOut];
        0x83 BrTable "br_table" [Cell, Cases];
        0x84 BufferHash "buffer.hash" [Ref, Pair, Pair, PairOut];
        0x85 DiscardRefs "discard.refs" [Refs];
        0x86 AssignRef "assign.ref" [RefMove, RefOut];
        0x87 CallYieldable "call.yieldable" [Function, Args, Target, Results];
        0x88 CallVariadicYieldable "call.variadic.yieldable" [Function, Segments, Args, Target, Results];
    }
    F32 {
        0x00 GlobalLoadF32 "global.load.f32" [Global4, CellOut];
        0x01 GlobalStoreF32 "global.store.f32" [Global4, Cell];
        0x02 GlobalLoadIndirectF32 "global.load.indirect.f32" [Cell, CellOut];
        0x03 GlobalStoreIndirectF32 "global.store.indirect.f32" [Cell, Cell];
        0x04 ConstF32Zero "const.f32.zero" [CellOut];
        0x05 ConstF32 "const.f32" [Imm32, CellOut];
        0x06 ListGetF32 "list.get.f32" [Ref, Cell, CellOut];
        0x07 ListSetF32 "list.set.f32" [Ref, Cell, Cell];
        0x08 SelectF32 "select.f32" [Cell, Cell, Cell, CellOut];
        0x09 SwitchF32 "switch.f32" [Cell, Cell, Cells, CellOut];
        0x0A AddF32 "add.f32" [Cell, Cell, CellOut];
        0x0B SubF32 "sub.f32" [Cell, Cell, CellOut];
        0x0C MulF32 "mul.f32" [Cell, Cell, CellOut];
        0x0D DivF32 "div.f32" [Cell, Cell, CellOut];
        0x0E RemF32 "rem.f32" [Cell, Cell, CellOut];
        0x0F FmaF32 "fma.f32" [Cell, Cell, Cell, CellOut];
        0x10 AbsF32 "abs.f32" [Cell, CellOut];
        0x11 NegF32 "neg.f32" [Cell, CellOut];
        0x12 CeilF32 "ceil.f32" [Cell, CellOut];
        0x13 FloorF32 "floor.f32" [Cell, CellOut];
        0x14 CastSi32F32 "cast.si32.f32" [Cell, CellOut];
        0x15 CastUi32F32 "cast.ui32.f32" [Cell, CellOut];
        0x16 CastF32Si32 "cast.f32.si32" [Cell, CellOut];
        0x17 CastF32Ui32 "cast.f32.ui32" [Cell, CellOut];
        0x18 BitcastI32F32 "bitcast.i32.f32" [Cell, CellOut];
        0x19 BitcastF32I32 "bitcast.f32.i32" [Cell, CellOut];
        0x1A AtanF32 "atan.f32" [Cell, CellOut];
        0x1B Atan2F32 "atan2.f32" [Cell, Cell, CellOut];
        0x1C CosF32 "cos.f32" [Cell, CellOut];
        0x1D SinF32 "sin.f32" [Cell, CellOut];
        0x1E ExpF32 "exp.f32" [Cell, CellOut];
        0x1F Exp2F32 "exp2.f32" [Cell, CellOut];
        0x20 Expm1F32 "expm1.f32" [Cell, CellOut];
        0x21 LogF32 "log.f32" [Cell, CellOut];
        0x22 Log10F32 "log10.f32" [Cell, CellOut];
        0x23 Log1pF32 "log1p.f32" [Cell, CellOut];
        0x24 Log2F32 "log2.f32" [Cell, CellOut];
        0x25 PowF32 "pow.f32" [Cell, Cell, CellOut];
        0x26 RsqrtF32 "rsqrt.f32" [Cell, CellOut];
        0x27 SqrtF32 "sqrt.f32" [Cell, CellOut];
        0x28 TanhF32 "tanh.f32" [Cell, CellOut];
        0x29 ErfF32 "erf.f32" [Cell, CellOut];
        0x2A CmpEqF32O "cmp.eq.f32.o" [Cell, Cell, CellOut];
        0x2B CmpEqF32U "cmp.eq.f32.u" [Cell, Cell, CellOut];
        0x2C CmpNeF32O "cmp.ne.f32.o" [Cell, Cell, CellOut];
        0x2D CmpNeF32U "cmp.ne.f32.u" [Cell, Cell, CellOut];
        0x2E CmpLtF32O "cmp.lt.f32.o" [Cell, Cell, CellOut];
        0x2F CmpLtF32U "cmp.lt.f32.u" [Cell, Cell, CellOut];
        0x30 CmpLteF32O "cmp.lte.f32.o" [Cell, Cell, CellOut];
        0x31 CmpLteF32U "cmp.lte.f32.u" [Cell, Cell, CellOut];
        0x32 CmpNanF32 "cmp.nan.f32" [Cell, CellOut];
        0x33 BufferLoadF32 "buffer.load.f32" [Ref, Pair, CellOut];
        0x34 BufferStoreF32 "buffer.store.f32" [Ref, Pair, Cell];
        0x35 BufferFillF32 "buffer.fill.f32" [Ref, Pair, Pair, Cell];
        0x36 RoundF32 "round.f32" [Cell, CellOut];
        0x37 MinF32 "min.f32" [Cell, Cell, CellOut];
        0x38 MaxF32 "max.f32" [Cell, Cell, CellOut];
        0x39 RoundF32Even "round.f32.even" [Cell, CellOut];
        0x3A CastF32Si64 "cast.f32.si64" [Cell, PairOut];
        0x3B CastF32Ui64 "cast.f32.ui64" [Cell, PairOut];
        0x3C CastSi64F32 "cast.si64.f32" [Pair, CellOut];
        0x3D CastUi64F32 "cast.ui64.f32" [Pair, CellOut];
        0x3E FpowiF32 "fpowi.f32" [Cell, Pair, CellOut];
    }
    F64 {
        0x00 GlobalLoadF64 "global.load.f64" [Global8, PairOut];
        0x01 GlobalStoreF64 "global.store.f64" [Global8, Pair];
        0x02 GlobalLoadIndirectF64 "global.load.indirect.f64" [Cell, PairOut];
        0x03 GlobalStoreIndirectF64 "global.store.indirect.f64" [Cell, Pair];
        0x04 ConstF64Zero "const.f64.zero" [PairOut];
        0x05 ConstF64 "const.f64" [Imm64, PairOut];
        0x06 ListGetF64 "list.get.f64" [Ref, Cell, PairOut];
        0x07 ListSetF64 "list.set.f64" [Ref, Cell, Pair];
        0x08 SelectF64 "select.f64" [Cell, Pair, Pair, PairOut];
        0x09 SwitchF64 "switch.f64" [Cell, Pair, Pairs, PairOut];
        0x0A AddF64 "add.f64" [Pair, Pair, PairOut];
        0x0B SubF64 "sub.f64" [Pair, Pair, PairOut];
        0x0C MulF64 "mul.f64" [Pair, Pair, PairOut];
        0x0D DivF64 "div.f64" [Pair, Pair, PairOut];
        0x0E RemF64 "rem.f64" [Pair, Pair, PairOut];
        0x0F FmaF64 "fma.f64" [Pair, Pair, Pair, PairOut];
        0x10 AbsF64 "abs.f64" [Pair, PairOut];
        0x11 NegF64 "neg.f64" [Pair, PairOut];
        0x12 CeilF64 "ceil.f64" [Pair, PairOut];
        0x13 FloorF64 "floor.f64" [Pair, PairOut];
        0x14 TruncF64F32 "trunc.f64.f32" [Pair, CellOut];
        0x15 ExtF32F64 "ext.f32.f64" [Cell, PairOut];
        0x16 CastSi32F64 "cast.si32.f64" [Cell, PairOut];
        0x17 CastUi32F64 "cast.ui32.f64" [Cell, PairOut];
        0x18 CastF64Si32 "cast.f64.si32" [Pair, CellOut];
        0x19 CastF64Ui32 "cast.f64.ui32" [Pair, CellOut];
        0x1A CastSi64F64 "cast.si64.f64" [Pair, PairOut];
        0x1B CastUi64F64 "cast.ui64.f64" [Pair, PairOut];
        0x1C CastF64Si64 "cast.f64.si64" [Pair, PairOut];
        0x1D CastF64Ui64 "cast.f64.ui64" [Pair, PairOut];
        0x1E BitcastI64F64 "bitcast.i64.f64" [Pair, PairOut];
        0x1F BitcastF64I64 "bitcast.f64.i64" [Pair, PairOut];
        0x20 AtanF64 "atan.f64" [Pair, PairOut];
        0x21 Atan2F64 "atan2.f64" [Pair, Pair, PairOut];
        0x22 CosF64 "cos.f64" [Pair, PairOut];
        0x23 SinF64 "sin.f64" [Pair, PairOut];
        0x24 ExpF64 "exp.f64" [Pair, PairOut];
        0x25 Exp2F64 "exp2.f64" [Pair, PairOut];
        0x26 Expm1F64 "expm1.f64" [Pair, PairOut];
        0x27 LogF64 "log.f64" [Pair, PairOut];
        0x28 Log10F64 "log10.f64" [Pair, PairOut];
        0x29 Log1pF64 "log1p.f64" [Pair, PairOut];
        0x2A Log2F64 "log2.f64" [Pair, PairOut];
        0x2B PowF64 "pow.f64" [Pair, Pair, PairOut];
        0x2C RsqrtF64 "rsqrt.f64" [Pair, PairOut];
        0x2D SqrtF64 "sqrt.f64" [Pair, PairOut];
        0x2E TanhF64 "tanh.f64" [Pair, PairOut];
        0x2F ErfF64 "erf.f64" [Pair, PairOut];
        0x30 CmpEqF64O "cmp.eq.f64.o" [Pair, Pair, CellOut];
        0x31 CmpEqF64U "cmp.eq.f64.u" [Pair, Pair, CellOut];
        0x32 CmpNeF64O "cmp.ne.f64.o" [Pair, Pair, CellOut];
        0x33 CmpNeF64U "cmp.ne.f64.u" [Pair, Pair, CellOut];
        0x34 CmpLtF64O "cmp.lt.f64.o" [Pair, Pair, CellOut];
        0x35 CmpLtF64U "cmp.lt.f64.u" [Pair, Pair, CellOut];
        0x36 CmpLteF64O "cmp.lte.f64.o" [Pair, Pair, CellOut];
        0x37 CmpLteF64U "cmp.lte.f64.u" [Pair, Pair, CellOut];
        0x38 CmpNanF64 "cmp.nan.f64" [Pair, CellOut];
        0x39 BufferLoadF64 "buffer.load.f64" [Ref, Pair, PairOut];
        0x3A BufferStoreF64 "buffer.store.f64" [Ref, Pair, Pair];
        0x3B BufferFillF64 "buffer.fill.f64" [Ref, Pair, Pair, Pair];
        0x3C RoundF64 "round.f64" [Pair, PairOut];
        0x3D MinF64 "min.f64" [Pair, Pair, PairOut];
        0x3E MaxF64 "max.f64" [Pair, Pair, PairOut];
        0x3F RoundF64Even "round.f64.even" [Pair, PairOut];
        0x40 FpowiF64 "fpowi.f64" [Pair, Pair, PairOut];
    }
}
