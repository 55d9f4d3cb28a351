//! The operand shapes of the SPIR-V instructions that compute kernels and neural graphs use, and which of them declare types and constants or
//! end blocks.
//!
//! A shape is a string, one letter per operand: `t` result type, `r` result id, `i` id defined before its use,
//! `f` id that may be defined later, `l` literal word, `s` literal string, `o` optional id, `w` optional literal;
//! for the rest of the instruction: `I` ids, `F` ids that may come later, `L` literals, `P` pairs of a phi,
//! `S` literal and label pairs of a switch.

use spirv::Op;

/// The shape of an instruction, or `None` if neither compute kernels nor neural graphs have use for it.
pub(crate) fn shape(op: Op) -> Option<&'static str> {
    mode_setting(op)
        .or_else(|| declarations(op))
        .or_else(|| memory(op))
        .or_else(|| values(op))
        .or_else(|| extensions(op))
        .or_else(|| graphs(op))
}

/// The shapes of the instructions of neural graphs, which no compute kernel has.
pub(crate) fn graphs(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::TypeGraphARM => "rlI",
        Op::GraphConstantARM => "trl",
        Op::GraphEntryPointARM => "fsF",
        Op::GraphARM => "tr",
        Op::GraphInputARM => "triI",
        Op::GraphSetOutputARM => "iiI",
        Op::GraphEndARM => "",
        _ => return None,
    })
}

/// The shape of an instruction whose words are known: an operation on specialization constants has the operands of the
/// operation that it names.
pub(crate) fn shape_of(op: Op, words: &[u32]) -> Option<&'static str> {
    if op != Op::SpecConstantOp {
        return shape(op);
    }
    Some(match words.get(3).and_then(|code| Op::from_u32(*code)) {
        Some(Op::CompositeExtract) => "trliL",
        Some(Op::CompositeInsert | Op::VectorShuffle) => "trliiL",
        _ => "trlI",
    })
}

fn mode_setting(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Nop | Op::NoLine | Op::FunctionEnd | Op::Return | Op::Unreachable | Op::Kill => "",
        Op::TerminateInvocation | Op::DemoteToHelperInvocation => "",
        Op::SourceContinued | Op::SourceExtension | Op::ModuleProcessed | Op::Extension => "s",
        Op::Source => "llL",
        Op::Name => "fs",
        Op::MemberName => "fls",
        Op::String | Op::ExtInstImport => "rs",
        Op::Line => "ill",
        Op::MemoryModel => "ll",
        Op::EntryPoint => "lfsF",
        Op::ExecutionMode => "flL",
        Op::ExecutionModeId => "flF",
        Op::Capability => "l",
        Op::Decorate => "flL",
        Op::DecorateId => "flF",
        Op::MemberDecorate => "fllL",
        Op::DecorateString => "flL",
        Op::MemberDecorateString => "fllL",
        Op::DecorationGroup => "r",
        Op::GroupDecorate => "iF",
        Op::Label => "r",
        Op::Branch => "f",
        Op::BranchConditional => "iffL",
        Op::Switch => "ifS",
        Op::LoopMerge => "fflL",
        Op::SelectionMerge => "fl",
        Op::ReturnValue => "i",
        Op::Phi => "trP",
        _ => return None,
    })
}

fn declarations(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::TypeVoid | Op::TypeBool | Op::TypeSampler => "r",
        Op::TypeInt => "rll",
        Op::TypeFloat => "rlw",
        Op::TypeVector | Op::TypeMatrix => "ril",
        Op::TypeImage => "rillllllw",
        Op::TypeSampledImage | Op::TypeRuntimeArray => "ri",
        Op::TypeArray => "rii",
        Op::TypeStruct => "rF",
        Op::TypePointer => "rlf",
        Op::TypeFunction => "riI",
        Op::TypeForwardPointer => "fl",
        Op::TypeCooperativeMatrixKHR => "riiiii",
        Op::TypeTensorARM => "rioo",
        Op::TypeUntypedPointerKHR => "rl",
        Op::ConstantTrue | Op::ConstantFalse | Op::ConstantNull | Op::Undef => "tr",
        Op::SpecConstantTrue | Op::SpecConstantFalse => "tr",
        Op::Constant | Op::SpecConstant => "trlL",
        Op::ConstantComposite | Op::SpecConstantComposite => "trI",
        Op::ConstantCompositeReplicateEXT | Op::SpecConstantCompositeReplicateEXT => "tri",
        Op::SpecConstantOp => "trlI",
        Op::Function => "trli",
        Op::FunctionParameter => "tr",
        Op::FunctionCall => "trfI",
        Op::Variable => "trlo",
        Op::UntypedVariableKHR => "trloo",
        _ => return None,
    })
}

fn memory(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Load => "triL",
        Op::Store | Op::CopyMemory => "iiL",
        Op::AccessChain | Op::InBoundsAccessChain => "triI",
        Op::PtrAccessChain | Op::InBoundsPtrAccessChain => "triiI",
        Op::UntypedAccessChainKHR | Op::UntypedInBoundsAccessChainKHR => "triiI",
        Op::ArrayLength => "tril",
        Op::ImageTexelPointer => "triii",
        Op::PtrEqual | Op::PtrNotEqual | Op::PtrDiff => "trii",
        Op::ControlBarrier => "iii",
        Op::MemoryBarrier => "ii",
        Op::AtomicLoad => "triii",
        Op::AtomicStore => "iiii",
        Op::AtomicExchange | Op::AtomicIAdd | Op::AtomicISub | Op::AtomicSMin | Op::AtomicUMin => "triiii",
        Op::AtomicSMax | Op::AtomicUMax | Op::AtomicAnd | Op::AtomicOr | Op::AtomicXor => "triiii",
        Op::AtomicFAddEXT | Op::AtomicFMinEXT | Op::AtomicFMaxEXT => "triiii",
        Op::AtomicCompareExchange => "triiiiii",
        Op::AtomicIIncrement | Op::AtomicIDecrement => "triii",
        Op::ImageFetch | Op::ImageRead => "triiL",
        Op::ImageWrite => "iiiL",
        Op::ImageQuerySize | Op::Image | Op::ImageQueryLevels | Op::ImageQuerySamples => "tri",
        Op::ImageQuerySizeLod | Op::SampledImage => "trii",
        Op::ImageSampleExplicitLod => "triilL",
        _ => return None,
    })
}

fn values(op: Op) -> Option<&'static str> {
    // Numeric ranges follow the order of the specification's sections.
    let code = op as u32;
    Some(match op {
        Op::ExtInst => "trilI",
        Op::VectorExtractDynamic => "trii",
        Op::VectorInsertDynamic => "triii",
        Op::VectorShuffle => "triiL",
        Op::CompositeConstruct => "trI",
        Op::CompositeExtract => "trilL",
        Op::CompositeInsert => "triilL",
        Op::CopyObject | Op::Transpose | Op::CopyLogical => "tri",
        Op::PtrCastToGeneric | Op::GenericCastToPtr => return None,
        Op::Not | Op::BitReverse | Op::BitCount | Op::LogicalNot | Op::SNegate | Op::FNegate => "tri",
        Op::Any | Op::All | Op::IsNan | Op::IsInf | Op::IsFinite | Op::IsNormal | Op::SignBitSet => "tri",
        Op::Select | Op::BitFieldSExtract | Op::BitFieldUExtract => "triii",
        Op::BitFieldInsert => "triiii",
        Op::GenericCastToPtrExplicit => return None,
        _ if (109..=124).contains(&code) => "tri",
        _ if (128..=191).contains(&code) || (194..=199).contains(&code) => "trii",
        _ => return None,
    })
}

fn extensions(op: Op) -> Option<&'static str> {
    let code = op as u32;
    Some(match op {
        Op::GroupNonUniformElect => "tri",
        Op::GroupNonUniformAll | Op::GroupNonUniformAny | Op::GroupNonUniformAllEqual => "trii",
        Op::GroupNonUniformBroadcastFirst | Op::GroupNonUniformBallot => "trii",
        Op::GroupNonUniformInverseBallot => "trii",
        Op::GroupNonUniformBroadcast | Op::GroupNonUniformBallotBitExtract => "triii",
        Op::GroupNonUniformBallotBitCount => "trili",
        Op::GroupNonUniformBallotFindLSB | Op::GroupNonUniformBallotFindMSB => "trii",
        Op::GroupNonUniformShuffle | Op::GroupNonUniformShuffleXor => "triii",
        Op::GroupNonUniformShuffleUp | Op::GroupNonUniformShuffleDown => "triii",
        Op::GroupNonUniformQuadBroadcast | Op::GroupNonUniformQuadSwap => "triii",
        Op::GroupNonUniformRotateKHR => "triiio",
        Op::GroupNonUniformQuadAllKHR | Op::GroupNonUniformQuadAnyKHR => "tri",
        _ if (349..=364).contains(&code) => "trilio",
        Op::SubgroupBallotKHR | Op::SubgroupFirstInvocationKHR => "tri",
        Op::SubgroupAllKHR | Op::SubgroupAnyKHR | Op::SubgroupAllEqualKHR => "tri",
        Op::SubgroupReadInvocationKHR => "trii",
        Op::SDot | Op::UDot | Op::SUDot => "triiL",
        Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat => "triiiL",
        Op::FmaKHR => "triii",
        Op::CompositeConstructReplicateEXT => "tri",
        Op::CooperativeMatrixLoadKHR => "triioL",
        Op::CooperativeMatrixStoreKHR => "iiioL",
        Op::CooperativeMatrixMulAddKHR => "triiiL",
        Op::CooperativeMatrixLengthKHR => "tri",
        Op::TensorReadARM => "triiL",
        Op::TensorWriteARM => "iiiL",
        Op::TensorQuerySizeARM => "trii",
        Op::AssumeTrueKHR => "i",
        Op::ExpectKHR => "trii",
        Op::ReadClockKHR => "tri",
        _ => return None,
    })
}

/// Whether the instruction ends a block.
pub(crate) fn is_terminator(op: Op) -> bool {
    matches!(
        op,
        Op::Branch
            | Op::BranchConditional
            | Op::Switch
            | Op::Return
            | Op::ReturnValue
            | Op::Kill
            | Op::Unreachable
            | Op::TerminateInvocation
    )
}

/// Whether the instruction declares a type.
pub(crate) fn is_type(op: Op) -> bool {
    let core = (Op::TypeVoid as u32..=Op::TypeFunction as u32).contains(&(op as u32));
    core || matches!(op, Op::TypeCooperativeMatrixKHR | Op::TypeTensorARM | Op::TypeUntypedPointerKHR)
}

/// Whether the instruction declares a constant.
pub(crate) fn is_constant(op: Op) -> bool {
    let core = (Op::ConstantTrue as u32..=Op::SpecConstantOp as u32).contains(&(op as u32));
    core || matches!(op, Op::ConstantCompositeReplicateEXT | Op::SpecConstantCompositeReplicateEXT)
}
