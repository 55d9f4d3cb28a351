//! Convolutions of few channels, such as those of pictures, on matrix units.

use halite_ops::{convolution::Convolution, window::Layout};

use super::{KernelInputs, images_32, step};
use crate::{
    Plan, Unfit,
    plan::{fixed, fixed_groups, groups},
};

/// Places of a workgroup, one for each invocation.
const PLACES: u32 = 128;
/// Rows and columns of a matrix.
const SIDE: u64 = 16;
/// Most filters of a workgroup, and most terms that it has in shared memory.
const MOST_FILTERS: u64 = 96;
const MOST_TERMS: u64 = 96;
/// Elements in a word of 16 bytes.
const WORD: u64 = 8;

/// Filters at 128 places for each workgroup.
pub(in crate::plans) fn few_last(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let most = |name| kernel.params.get(name).map(u64::from);
    let (most_channels, most_depth) = (most("most_channels")?, most("most_depth")?);
    if shape.layout != Layout::Nhwc || shape.groups != 1 {
        return Err(Unfit("wants channels last and one group".into()));
    }
    if shape.channels > most_channels || !shape.filters.is_multiple_of(WORD) {
        return Err(Unfit(format!(
            "wants at most {most_channels} channels and filters in words of {WORD}, not {} and {}",
            shape.channels, shape.filters
        )));
    }
    let depth = shape.depth();
    if depth > most_depth {
        return Err(Unfit(format!("is for sums of at most {most_depth} terms, not {depth}")));
    }
    // As even as they can be.
    let even = |all: u64, most: u64| {
        let parts = all.div_ceil(most).max(1);
        (parts, all.div_ceil(parts).next_multiple_of(SIDE).max(SIDE))
    };
    let (_, columns) = even(shape.filters, MOST_FILTERS);
    let (parts, terms) = even(depth, MOST_TERMS);
    let w = &shape.window;
    let [height, width] = w.output();
    let places = u64::from(PLACES);
    // Windows and filters, each row a word longer than it is; added values; results.
    let operands = places * (terms / WORD + 1) + terms * (columns / WORD + 1);
    let shared = operands.max(SIDE * (columns / 4 + 1)).max(places * (columns / WORD + 1));
    let [kernel_height, kernel_width] = w.kernel;
    let numbers = [places, columns, terms, parts, shape.channels, kernel_height, kernel_width];
    let numbers = numbers.into_iter().chain(w.dilations).chain([shared]);
    let constants = numbers.map(|number| fixed("a size", number)).collect::<Result<Vec<u32>, Unfit>>()?;
    let grid = [
        groups(height * width, PLACES)?,
        fixed_groups(shape.filters, fixed("filters", columns)?)?.into(),
        images_32(shape)?,
    ];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

#[cfg(test)]
mod tests {
    use halite_ops::Operation;

    use super::*;
    use crate::variants_of;

    fn planned(operation: &str) -> Result<Plan, Unfit> {
        let operation = Operation::parse(operation).unwrap();
        variants_of("conv2d").find(|v| v.name == "conv2d.f16.fewlast").unwrap().plan(&operation)
    }

    #[test]
    fn terms_and_filters_are_divided_evenly() {
        let of = |shape: &str| {
            let plan = planned(&format!("conv2d:dtype=f16,layout=nhwc,{shape}")).unwrap();
            let constants = &plan.steps[0].constants;
            ([constants[3], constants[4], constants[5]], plan.steps[0].grid)
        };
        let first = of("input=8x224x224x3,filter=7x7x3x64,strides=2x2,pads=3x3x3x3");
        assert_eq!(first, ([64, 80, 2], [98.into(), 1.into(), 8.into()]));
        let first = of("input=1x64x64x3,filter=3x3x3x24,pads=1x1x1x1");
        assert_eq!(first, ([32, 32, 1], [32.into(), 1.into(), 1.into()]));
        assert_eq!(of("input=2x9x9x4,filter=2x2x4x128").0, [64, 16, 1]);
    }

    #[test]
    fn others_are_refused() {
        for (shape, why) in [
            ("layout=nhwc,input=1x32x32x8,filter=3x3x8x64", "channels"),
            ("layout=nhwc,input=1x32x32x3,filter=3x3x3x20", "words"),
            ("layout=nhwc,input=1x224x224x3,filter=16x16x3x768", "terms"),
            ("input=1x3x32x32,filter=64x3x3x3", "last"),
        ] {
            let refused = planned(&format!("conv2d:dtype=f16,{shape}")).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
