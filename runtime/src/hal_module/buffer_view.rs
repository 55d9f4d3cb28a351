//! The functions `hal.buffer_view.*`, among them the checks of inputs whose messages users see most.

use std::fmt::Write;

use halite_abi::{ElementType, Encoding, Result, bail, import::hal, object};
use halite_vm::{Arguments, Ref, Results};

use super::{
    Entry, HalModule,
    args::{self, length, size},
    entry,
    objects::BufferObject,
};
use crate::{
    tensor::describe,
    view::{BufferView, Shape},
    vmdata,
};

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(hal::BUFFER_VIEW_CREATE, create),
    entry(hal::BUFFER_VIEW_ASSERT, assert),
    entry(hal::BUFFER_VIEW_BUFFER, buffer),
    entry(hal::BUFFER_VIEW_ELEMENT_TYPE, element_type),
    entry(hal::BUFFER_VIEW_ENCODING_TYPE, encoding_type),
    entry(hal::BUFFER_VIEW_RANK, rank),
    entry(hal::BUFFER_VIEW_DIM, dim),
    entry(hal::BUFFER_VIEW_TRACE, trace),
];

const WANTED: &str = object::BUFFER_VIEW;

fn create(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let span = args::buffer(args)?.subspan(size(args, "offset")?, length(args)?)?;
    let element_type = ElementType(args::bits(args)?);
    let encoding = Encoding(args::bits(args)?);
    let shape = (0..args.span()?).map(|_| size(args, "dimension")).collect::<Result<Shape>>()?;
    if encoding == Encoding::DENSE_ROW_MAJOR {
        let length = element_type.dense_byte_length(&shape);
        if length.is_none_or(|length| length > span.length) {
            bail!(
                OutOfRange,
                "a tensor {} takes {} bytes, its buffer range has {}",
                describe(element_type, &shape),
                length.map_or("too many".to_owned(), |length| length.to_string()),
                span.length
            );
        }
    }
    results.object(BufferView { span, shape, element_type, encoding });
    Ok(())
}

fn assert(_: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let reference = args.reference()?;
    let name = args.reference()?;
    let name = || vmdata::label(&name);
    let Some(view) = reference.downcast_ref::<BufferView>() else {
        bail!(
            InvalidArgument,
            "{} must be a tensor (hal.buffer_view) but is {}",
            name(),
            reference.type_name().unwrap_or("null")
        );
    };
    let element_type = ElementType(args::bits(args)?);
    let encoding = Encoding(args::bits(args)?);
    let mut shape = Shape::new();
    for _ in 0..args.span()? {
        shape.push(size(args, "expected dimension")?);
    }
    check_view(view, &name, element_type, encoding, &shape)
}

fn check_view(
    view: &BufferView,
    name: &dyn Fn() -> String,
    element_type: ElementType,
    encoding: Encoding,
    shape: &[u64],
) -> Result<()> {
    let (has, wanted) = (view.element_type, element_type);
    if !element_types_fit(has, wanted) {
        bail!(
            InvalidArgument,
            "{} element type mismatch; expected {wanted} ({:08x}) but have {has} ({:08x})",
            name(),
            wanted.0,
            has.0
        );
    }
    if view.encoding != Encoding::OPAQUE && view.encoding != encoding {
        bail!(
            InvalidArgument,
            "{} encoding mismatch; expected {:08x} but have {:08x}",
            name(),
            encoding.0,
            view.encoding.0
        );
    }
    if view.shape.len() != shape.len() {
        bail!(
            InvalidArgument,
            "{} shape rank mismatch; expected {} but have {}; {}",
            name(),
            shape.len(),
            view.shape.len(),
            both_shapes(shape, &view.shape)
        );
    }
    match shape.iter().zip(&view.shape).position(|(wanted, has)| wanted != has) {
        None => Ok(()),
        Some(i) => bail!(
            InvalidArgument,
            "{} shape dimension {i} mismatch; expected {} but have {}; {}",
            name(),
            shape[i],
            view.shape[i],
            both_shapes(shape, &view.shape)
        ),
    }
}

/// Integers of one width stand for each other whatever their sign; opaque data fits anything.
fn element_types_fit(has: ElementType, wanted: ElementType) -> bool {
    has == wanted
        || has.0 >> 24 == 0
        || (has.is_integer() && wanted.is_integer() && has.bit_count() == wanted.bit_count())
}

fn both_shapes(wanted: &[u64], has: &[u64]) -> String {
    format!("expected shape `{}`, actual shape `{}`", shape_text(wanted), shape_text(has))
}

fn shape_text(shape: &[u64]) -> String {
    let mut text = String::new();
    for (i, dim) in shape.iter().enumerate() {
        let _ = write!(text, "{}{dim}", if i == 0 { "" } else { "x" });
    }
    text
}

fn buffer(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let reference = args.reference()?;
    results.object(BufferObject(reference.expect::<BufferView>(WANTED)?.span.clone()));
    Ok(())
}

fn element_type(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    results.i32(args.reference()?.expect::<BufferView>(WANTED)?.element_type.0.cast_signed());
    Ok(())
}

fn encoding_type(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    results.i32(args.reference()?.expect::<BufferView>(WANTED)?.encoding.0.cast_signed());
    Ok(())
}

fn rank(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let rank = args.reference()?.expect::<BufferView>(WANTED)?.shape.len();
    results.i32(i32::try_from(rank).unwrap_or(i32::MAX));
    Ok(())
}

fn dim(_: &HalModule, args: &mut Arguments, results: &mut Results) -> Result<()> {
    let reference = args.reference()?;
    let view = reference.expect::<BufferView>(WANTED)?;
    let index = usize::try_from(args.i32()?).ok();
    let dim = index.and_then(|i| view.shape.get(i)).copied().unwrap_or(0);
    results.i64(i64::try_from(dim).unwrap_or(i64::MAX));
    Ok(())
}

fn trace(hal: &HalModule, args: &mut Arguments, _: &mut Results) -> Result<()> {
    let key = vmdata::label(&args.reference()?);
    let references = (0..args.span()?).map(|_| args.reference()).collect::<Result<Vec<Ref>>>()?;
    let views = references
        .iter()
        .map(|reference| reference.expect::<BufferView>(WANTED).cloned())
        .collect::<Result<Vec<_>>>()?;
    (hal.trace)(&key, &views);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_signedness_does_not_matter_width_does() {
        assert!(element_types_fit(ElementType::SI32, ElementType::I32));
        assert!(element_types_fit(ElementType::I1, ElementType::I8));
        assert!(element_types_fit(ElementType::NONE, ElementType::F32));
        assert!(!element_types_fit(ElementType::I32, ElementType::F32));
        assert!(!element_types_fit(ElementType::I64, ElementType::I32));
        assert!(!element_types_fit(ElementType::F16, ElementType::BF16));
    }

    #[test]
    fn shapes_print_as_users_write_them() {
        assert_eq!(both_shapes(&[4, 8], &[32]), "expected shape `4x8`, actual shape `32`");
        assert_eq!(shape_text(&[]), "");
    }
}
