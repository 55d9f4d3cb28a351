//! Images, samplers and tensors of kernels, as storage buffers of their elements: what reads, samples and writes them becomes
//! loads, arithmetic and stores. So kernels that were written for other descriptors run on devices that have buffers only,
//! and on tensors that are plain memory.
//!
//! | instruction | becomes |
//! |---|---|
//! | `OpImageSampleExplicitLod` | filter and address modes of the sampler, in f32 (`sample.rs`) |
//! | `OpImageFetch`, `OpImageRead`, `OpImageWrite`, `OpImageQuery…` | `texels.rs` |
//! | `OpTensorReadARM`, `OpTensorWriteARM`, `OpTensorQuerySizeARM` | `tensors.rs` |
//!
//! Elements lie packed, row-major, as words of 32 bits. What lies outside is read as zero, and not written.

mod code;
mod memory;
mod sample;
mod tensors;
#[cfg(test)]
mod tests;
mod texels;
mod what;

use std::collections::{BTreeMap, HashMap, HashSet};

use spirv::{Capability, Decoration, Op, StorageClass};

use self::code::Code;
pub use self::what::{Image, Numbers, Opaque, Outside, Sampler};
use crate::{
    decorations::Decorations,
    edit::Editor,
    error::{ChangeError, unsupported},
    module::{Inst, Module},
    words::{instruction, literal, literal_text},
};

/// What is declared for images and tensors, and not needed for buffers.
const CAPABILITIES: [Capability; 9] = [
    Capability::TensorsARM,
    Capability::StorageTensorArrayDynamicIndexingARM,
    Capability::ImageQuery,
    Capability::StorageImageExtendedFormats,
    Capability::StorageImageReadWithoutFormat,
    Capability::StorageImageWriteWithoutFormat,
    Capability::Image1D,
    Capability::Sampled1D,
    Capability::ImageGatherExtended,
];
/// Most words that instructions on images and tensors become: thousands of samples.
const MOST_WORDS: usize = 1 << 21;
const TENSORS: &str = "SPV_ARM_tensors";
const BUFFERS: &str = "SPV_KHR_storage_buffer_storage_class";
/// First version that knows storage buffers without an extension.
const BUFFERS_SINCE: u32 = 0x0001_0300;

/// The module with its images and tensors as storage buffers under the same sets and bindings; `None` where it has none.
/// `bound` says by set and binding what they are.
///
/// # Errors
/// The words are no module, or it does with an image or a tensor what is not supported, which is named.
pub fn buffers_for(
    words: &[u32],
    bound: &BTreeMap<(u32, u32), Opaque>,
) -> Result<Option<Vec<u32>>, ChangeError> {
    let module = Module::parse(words)?;
    let found = Found::of(&module)?;
    if found.variables.is_empty() {
        return Ok(None);
    }
    let decorations = Decorations::read(&module);
    let mut edit = Editor::new(&module);
    found.declare(&module, &mut edit);
    let mut code = Code::new(&module, &mut edit);
    let mut handles: HashMap<u32, u32> = HashMap::new();
    let mut made = 0;
    let code_of = module.insts().iter().skip_while(|inst| inst.op != Op::Function);
    for inst in code_of {
        let behind = |id: u32| handles.get(&id).copied().or(found.variables.contains(&id).then_some(id));
        let first =
            module.operands(inst).first().filter(|_| takes_opaque(inst.op)).and_then(|id| behind(*id));
        let Some(first) = first else {
            if module.uses(inst).any(|used| behind(used.id).is_some()) {
                return unsupported(format!("an image or a tensor is used by {:?}", inst.op));
            }
            continue;
        };
        match inst.op {
            Op::Load | Op::Image | Op::CopyObject => {
                handles.insert(inst.id, first);
                code.edit.remove(inst);
            }
            _ => {
                let opaque = behind_variable(&decorations, bound, first)?;
                let new = replacement(&mut code, inst, first, opaque)?;
                made += new.len();
                if made > MOST_WORDS {
                    return unsupported("so many reads of images and tensors in one kernel");
                }
                code.edit.replace(inst, new);
            }
        }
    }
    code.finish();
    drop(code);
    found.forget(&module, &mut edit, &handles);
    Ok(Some(edit.finish()?))
}

/// What is bound to a variable.
fn behind_variable<'b>(
    decorations: &Decorations<'_>,
    bound: &'b BTreeMap<(u32, u32), Opaque>,
    variable: u32,
) -> Result<&'b Opaque, ChangeError> {
    let number = |decoration| decorations.value(variable, decoration).unwrap_or(0);
    let (set, binding) = (number(Decoration::DescriptorSet), number(Decoration::Binding));
    match bound.get(&(set, binding)) {
        Some(opaque) => Ok(opaque),
        None => unsupported(format!(
            "binding {binding} of set {set} is an image or a tensor in the kernel, and none is bound"
        )),
    }
}

/// Whether an instruction's first operand may be an image or a tensor, or a variable that is one.
fn takes_opaque(op: Op) -> bool {
    matches!(
        op,
        Op::Load
            | Op::CopyObject
            | Op::Image
            | Op::ImageSampleExplicitLod
            | Op::ImageFetch
            | Op::ImageRead
            | Op::ImageWrite
            | Op::ImageQuerySize
            | Op::ImageQuerySizeLod
            | Op::ImageQueryLevels
            | Op::ImageQuerySamples
            | Op::TensorReadARM
            | Op::TensorWriteARM
            | Op::TensorQuerySizeARM
    )
}

/// What an instruction on the variable of an image or a tensor becomes.
fn replacement(
    code: &mut Code<'_, '_, '_>,
    inst: &Inst,
    variable: u32,
    opaque: &Opaque,
) -> Result<Vec<u32>, ChangeError> {
    match opaque {
        Opaque::Image(image) if inst.op == Op::ImageSampleExplicitLod => {
            sample::replace(code, inst, variable, image)?;
        }
        Opaque::Image(image) => texels::replace(code, inst, variable, image)?,
        Opaque::Tensor(sizes) => tensors::replace(code, inst, variable, sizes)?,
    }
    Ok(code.take())
}

/// What a module declares of images and tensors.
struct Found {
    /// Variables that are an image or a tensor.
    variables: HashSet<u32>,
    /// Types of images, samplers, tensors, and pointers to them.
    types: HashSet<u32>,
}

impl Found {
    fn of(module: &Module<'_>) -> Result<Found, ChangeError> {
        let mut found = Found { variables: HashSet::new(), types: HashSet::new() };
        let constant = StorageClass::UniformConstant as u32;
        for inst in module.insts() {
            let operands = module.operands(inst);
            match inst.op {
                Op::TypeImage | Op::TypeSampledImage | Op::TypeSampler | Op::TypeTensorARM => {
                    found.types.insert(inst.id);
                }
                Op::TypePointer if found.types.contains(&operands[1]) => {
                    if operands[0] != constant {
                        return unsupported("images and tensors in functions' variables");
                    }
                    found.types.insert(inst.id);
                }
                Op::TypeArray | Op::TypeRuntimeArray | Op::TypeStruct | Op::TypeFunction
                    if operands.iter().any(|id| found.types.contains(id)) =>
                {
                    return unsupported("images and tensors in arrays or as parameters of functions");
                }
                Op::Variable if found.types.contains(&inst.ty) => {
                    found.variables.insert(inst.id);
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Declares the variables as buffers of words.
    fn declare(&self, module: &Module<'_>, edit: &mut Editor<'_, '_>) {
        let uint = edit.uint();
        let array = edit.own_global(Op::TypeRuntimeArray, None, &[uint]);
        edit.decorate(Op::Decorate, &[array, Decoration::ArrayStride as u32, 4]);
        let block = edit.own_global(Op::TypeStruct, None, &[array]);
        edit.decorate(Op::Decorate, &[block, Decoration::Block as u32]);
        edit.decorate(Op::MemberDecorate, &[block, 0, Decoration::Offset as u32, 0]);
        let class = StorageClass::StorageBuffer as u32;
        let pointer = edit.pointer(StorageClass::StorageBuffer, block);
        for inst in module.insts().iter().filter(|inst| self.variables.contains(&inst.id)) {
            // Variables come behind all types, where their new one is declared.
            edit.own_variable(inst, pointer, class);
        }
    }

    /// Leaves out what is declared, named and decorated of what is gone.
    fn forget(&self, module: &Module<'_>, edit: &mut Editor<'_, '_>, handles: &HashMap<u32, u32>) {
        let mut has_buffers = module.version() >= BUFFERS_SINCE;
        for inst in module.insts() {
            let operands = module.operands(inst);
            let is_gone = |id: &u32| self.types.contains(id) || handles.contains_key(id);
            let goes = match inst.op {
                Op::Capability => CAPABILITIES.iter().any(|capability| *capability as u32 == operands[0]),
                Op::Extension => {
                    let name = literal_text(operands);
                    has_buffers |= name.as_deref() == Some(BUFFERS);
                    name.as_deref() == Some(TENSORS)
                }
                Op::Name | Op::Decorate => is_gone(&operands[0]),
                _ => self.types.contains(&inst.id),
            };
            if goes {
                edit.remove(inst);
            }
        }
        let behind = module.insts().iter().find(|inst| inst.op != Op::Capability);
        if let Some(first) = behind.filter(|_| !has_buffers) {
            edit.insert_before(first, instruction(Op::Extension, &literal(BUFFERS)));
        }
    }
}
