//! The type table of a module: what each type id is, and how many bytes it takes.

use spirv::{Op, StorageClass};

use crate::{
    error::SpirvError,
    grammar::{is_constant, is_type},
    module::{Inst, Module},
};

/// A type, with its parts by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Void,
    Bool,
    Int {
        width: u32,
    },
    Float {
        width: u32,
    },
    Vector {
        elem: u32,
        count: u32,
    },
    Matrix {
        column: u32,
        count: u32,
    },
    Array {
        elem: u32,
        len: Option<u32>,
    },
    RuntimeArray {
        elem: u32,
    },
    Struct {
        members: Vec<u32>,
    },
    Pointer {
        class: StorageClass,
        pointee: u32,
    },
    Function {
        ret: u32,
        params: Vec<u32>,
    },
    /// Images, cooperative matrices, tensors, …: known to exist, not looked into.
    Other,
}

/// Every type of a module by id, with its size.
#[derive(Debug)]
pub(crate) struct Types {
    table: Vec<Option<(Type, u64)>>,
}

fn read_pointer(module: &Module<'_>, inst: &Inst) -> Result<Type, SpirvError> {
    let bad = |what: String| SpirvError::at(inst.at, format!("OpTypePointer: {what}"));
    let [class, pointee] = *module.operands(inst) else {
        return Err(bad("two operands are needed".to_owned()));
    };
    let class = StorageClass::from_u32(class).ok_or_else(|| bad("unknown storage class".to_owned()))?;
    if !module.def(pointee).is_some_and(|d| is_type(d.op)) {
        return Err(bad(format!("id {pointee} is no type")));
    }
    Ok(Type::Pointer { class, pointee })
}

impl Types {
    /// Reads all type declarations, in order.
    pub fn build(module: &Module<'_>) -> Result<Self, SpirvError> {
        let mut types = Types { table: vec![None; module.bound() as usize] };
        for inst in module.insts() {
            if let Some(ty) = types.read(module, inst)? {
                let size = types.size_of_parts(module, &ty);
                types.table[inst.id as usize] = Some((ty, size));
            }
        }
        Ok(types)
    }

    /// The type with this id.
    pub fn get(&self, id: u32) -> Option<&Type> {
        self.table.get(id as usize)?.as_ref().map(|(ty, _)| ty)
    }

    /// Bytes a value takes when packed naturally: explicit layouts may take more. 0 if it has no size.
    pub fn size(&self, id: u32) -> u64 {
        self.table.get(id as usize).and_then(Option::as_ref).map_or(0, |(_, size)| *size)
    }

    /// The element type and count of a scalar or vector.
    pub fn lanes(&self, id: u32) -> Option<(&Type, u32)> {
        match self.get(id)? {
            Type::Vector { elem, count } => Some((self.get(*elem)?, *count)),
            scalar @ (Type::Bool | Type::Int { .. } | Type::Float { .. }) => Some((scalar, 1)),
            _ => None,
        }
    }

    fn read(&self, module: &Module<'_>, inst: &Inst) -> Result<Option<Type>, SpirvError> {
        let words = module.operands(inst);
        let bad = |what: &str| SpirvError::at(inst.at, format!("Op{:?}: {what}", inst.op));
        let value_type = |id: u32| match self.get(id) {
            Some(Type::Void | Type::Function { .. }) | None => Err(bad(&format!("id {id} is no value type"))),
            Some(_) => Ok(id),
        };
        let scalar = |id: u32| match self.get(id) {
            Some(Type::Bool | Type::Int { .. } | Type::Float { .. }) => Ok(id),
            _ => Err(bad(&format!("id {id} is no scalar type"))),
        };
        Ok(Some(match inst.op {
            Op::TypeVoid => Type::Void,
            Op::TypeBool => Type::Bool,
            Op::TypeInt => match (words[0], words[1]) {
                (width @ (8 | 16 | 32 | 64), 0 | 1) => Type::Int { width },
                (width, sign) => return Err(bad(&format!("width {width} with signedness {sign}"))),
            },
            Op::TypeFloat => match words[0] {
                width @ (8 | 16 | 32 | 64) => Type::Float { width },
                width => return Err(bad(&format!("width {width}"))),
            },
            Op::TypeVector => match words[1] {
                count @ 2..=4 => Type::Vector { elem: scalar(words[0])?, count },
                count => return Err(bad(&format!("{count} components"))),
            },
            Op::TypeMatrix => match (self.get(words[0]), words[1]) {
                (Some(Type::Vector { .. }), count @ 2..=4) => Type::Matrix { column: words[0], count },
                _ => return Err(bad("columns must be 2 to 4 vectors")),
            },
            Op::TypeArray => self.read_array(module, inst)?,
            Op::TypeRuntimeArray => Type::RuntimeArray { elem: value_type(words[0])? },
            Op::TypeStruct => {
                // Only physical pointers may come later; their size is known without the declaration.
                let later = |id: &u32| module.def(*id).is_some_and(|d| d.op == Op::TypePointer);
                if let Some(id) = words.iter().find(|id| value_type(**id).is_err() && !later(id)) {
                    return Err(bad(&format!("member type {id} is no value type")));
                }
                Type::Struct { members: words.to_vec() }
            }
            Op::TypePointer => read_pointer(module, inst)?,
            Op::TypeFunction => {
                let params = words[1..].iter().map(|p| value_type(*p)).collect::<Result<_, _>>()?;
                self.get(words[0]).ok_or_else(|| bad("the return type is no type"))?;
                Type::Function { ret: words[0], params }
            }
            op if is_type(op) => Type::Other,
            _ => return Ok(None),
        }))
    }

    fn read_array(&self, module: &Module<'_>, inst: &Inst) -> Result<Type, SpirvError> {
        let [elem, len] = *module.operands(inst) else {
            return Err(SpirvError::at(inst.at, "OpTypeArray has a wrong number of operands"));
        };
        if matches!(
            self.get(elem),
            None | Some(Type::Void | Type::Function { .. } | Type::RuntimeArray { .. })
        ) {
            return Err(SpirvError::at(inst.at, format!("OpTypeArray: id {elem} is no sized type")));
        }
        let def = module.def(len).filter(|d| d.at < inst.at);
        let is_int = def.is_some_and(|d| matches!(self.get(d.ty), Some(Type::Int { .. })));
        let is_constant = def.is_some_and(|d| is_constant(d.op));
        if !is_int || !is_constant || module.constant_u32(len) == Some(0) {
            return Err(SpirvError::at(
                inst.at,
                "OpTypeArray: the length must be a positive integer constant",
            ));
        }
        Ok(Type::Array { elem, len: module.constant_u32(len) })
    }

    fn size_of_parts(&self, module: &Module<'_>, ty: &Type) -> u64 {
        match ty {
            Type::Bool => 4,
            Type::Int { width } | Type::Float { width } => u64::from(*width / 8),
            Type::Vector { elem, count } => self.size(*elem).saturating_mul(u64::from(*count)),
            Type::Matrix { column, count } => self.size(*column).saturating_mul(u64::from(*count)),
            Type::Array { elem, len } => self.size(*elem).saturating_mul(u64::from(len.unwrap_or(1))),
            Type::Struct { members } => members.iter().fold(0, |sum: u64, m| {
                let forward = self.get(*m).is_none() && module.def(*m).is_some();
                sum.saturating_add(if forward { 8 } else { self.size(*m) })
            }),
            Type::Pointer { .. } => 8,
            _ => 0,
        }
    }
}
