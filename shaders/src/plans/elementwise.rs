//! The dispatches of the kernels of `elementwise`, by template.

use halite_ops::{DType, Operation, elementwise::Elementwise, expression, runs::Runs};
use halite_sizes::Size;

use crate::{
    Module, Params, Plan, Slot, Step, Unfit,
    emit::{self, Grid, LANES, Layout},
    plans::{
        Lower,
        runs::{Around, Taken},
    },
};

impl Lower for Elementwise {
    fn lower(&self, template: &str, _build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "quad" => {
                let (op, around) = apart(self, params)?;
                let plan = quad(&op, params)?;
                match around {
                    Some(around) => around.plan(plan),
                    None => Ok(plan),
                }
            }
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Workgroups in a row of the grid: what every Vulkan device takes.
const MOST_GROUPS: u32 = 65_535;

/// Most functions that an invocation computes one after the other: a driver compiles each repetition, and what takes long to compute
/// gains nothing by wider reads.
const MOST_UNROLLED: u32 = 128;

/// What kernels compute of an operation, and what is done around it: runs are written of whole numbers of what an invocation makes,
/// others are copied there.
pub(crate) fn apart(op: &Elementwise, params: &Params) -> Result<(Elementwise, Option<Around>), Unfit> {
    let each = u64::from(LANES * params.get("quads")?);
    let taken = Taken { read: false, written: op.written.is_some_and(|runs| runs.are_multiples_of(each)) };
    let ([_, written], other) = taken.split(None, op.written);
    let alone = Elementwise { written: None, ..op.clone() };
    let around = Around::of(other, Operation::Elementwise(alone.clone()));
    Ok((Elementwise { written, ..alone }, around))
}

fn quad(op: &Elementwise, params: &Params) -> Result<Plan, Unfit> {
    let [lanes, quads] = [params.get("lanes")?, params.get("quads")?];
    let float16 = params.get("float16").is_ok_and(|flag| flag == 1);
    if float16 && op.program.outputs.iter().all(|o| o.dtype != DType::F16) {
        return Err(Unfit("is for f16 results, and there are none".to_owned()));
    }
    let dtypes = op.dtypes();
    let types = op.program.types(&dtypes).map_err(Unfit)?;
    let program = expression::simplify(&op.program, &types, &dtypes);
    let types = program.types(&dtypes).map_err(Unfit)?;
    if quads > 1 && program.nodes.len() as u32 * quads > MOST_UNROLLED {
        let nodes = program.nodes.len();
        return Err(Unfit(format!("repeats programs {quads} times, and one of {nodes} functions is long")));
    }
    let layout = Layout::new(op)?;
    let groups = layout.elements.div_ceil(LANES * quads * lanes);
    // Rows of the same length: one that is nearly empty would be as many workgroups as a full one.
    let row = groups.div_ceil(groups.div_ceil(MOST_GROUPS).max(1)).max(1);
    let each = u64::from(LANES * quads);
    let written = op.written.map(|runs| Runs {
        length: runs.length / each,
        pitch: runs.pitch / each,
        offset: runs.offset / each,
    });
    let grid = Grid { invocations: lanes, row: row * u64::from(lanes), quads, float16, written };
    let tables: Vec<_> =
        op.tables.0.iter().map(|(dtype, dims)| (*dtype, dims.iter().product::<Size>())).collect();
    let emitted = emit::emit(&program, &types, (&dtypes, &tables), &layout, &grid).map_err(Unfit)?;
    let inputs = (0..dtypes.len() + tables.len()).map(Slot::Input);
    Ok(Plan::of(Step {
        module: Module::Emitted(emitted.words.into()),
        constants: Vec::new(),
        push: emitted.push,
        bindings: inputs.chain((0..program.outputs.len()).map(Slot::Output)).collect(),
        grid: [if groups == 0 { 0.into() } else { row }, groups.div_ceil(row), 1.into()],
        subgroup_size: 0,
    }))
}

#[cfg(test)]
mod tests {
    use halite_ops::Operation;

    use crate::variants_of;

    #[test]
    fn long_programs_are_not_repeated() {
        let fits = |length: usize| {
            let program: Vec<String> = (0..length).map(|i| format!("add %{i} $0")).collect();
            let text =
                format!("elementwise:inputs=i8[64],program=abs $0; {} -> %{length}:i8", program.join("; "));
            let operation = Operation::parse(&text).unwrap();
            let fits = variants_of("elementwise").filter(|variant| variant.plan(&operation).is_ok());
            let mut names: Vec<&str> =
                fits.map(|variant| variant.name.as_str()).filter(|name| !name.contains("float16")).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(fits(31), ["elementwise.quad", "elementwise.quad2", "elementwise.quad4"]);
        assert_eq!(fits(32), ["elementwise.quad", "elementwise.quad2"]);
        assert_eq!(fits(64), ["elementwise.quad"]);
    }
}
