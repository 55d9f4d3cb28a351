//! The kernels that measure what a device can do at most: copies of memory, and arithmetic in registers. They compute no
//! operation; speeds of kernels are told beside theirs.

use halite_facts::{ComponentType, Feature, FeatureSet, MatrixShape};
use halite_ops::DType;
use halite_sizes::Size;
use halite_targets::Capabilities;

use crate::{Needs, Plan, Slot, Step, Unfit, library, plan::fixed};

/// Invocations in a workgroup of a probe.
const LANES: u32 = 128;
/// Most workgroups in one dimension of a dispatch that every device takes.
const MOST_GROUPS: u32 = 65535;

/// What a probe measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Probe {
    /// Copies of memory by a kernel.
    Copy,
    /// `f32` fused multiply-adds.
    FmaF32,
    /// Fused multiply-adds of pairs of `f16`.
    FmaF16,
    /// 32-bit integer multiply-adds.
    MultiplyAddI32,
    /// Dot products of four packed 8-bit integers.
    DotI8,
    /// Cooperative matrices of `f16` with `f32` sums.
    MatrixF16,
    /// Cooperative matrices of `i8` with `i32` sums.
    MatrixI8,
}

/// A probe for a device.
#[derive(Clone, Debug)]
pub struct ProbePlan {
    /// What is dispatched. A copy has one input and one output of the same length; the others have one output.
    pub plan: Plan,
    /// Bytes of the output.
    pub output_bytes: u64,
    /// Arithmetic operations; a multiply-add counts twice.
    pub flops: f64,
    /// Bytes that are read and written.
    pub bytes: f64,
}

impl Probe {
    /// Those that measure arithmetic.
    pub const ARITHMETIC: [Probe; 6] = [
        Probe::FmaF32,
        Probe::FmaF16,
        Probe::MultiplyAddI32,
        Probe::DotI8,
        Probe::MatrixF16,
        Probe::MatrixI8,
    ];

    /// Its name, for reports.
    pub fn name(self) -> &'static str {
        match self {
            Probe::Copy => "copy kernel",
            Probe::FmaF32 => "f32 fma",
            Probe::FmaF16 => "f16 fma",
            Probe::MultiplyAddI32 => "i32 multiply-add",
            Probe::DotI8 => "i8 dot product",
            Probe::MatrixF16 => "f16 matrices",
            Probe::MatrixI8 => "i8 matrices",
        }
    }

    /// Whether kernels on operands of the type could reach what the probe measures.
    pub fn bounds(self, operand: DType) -> bool {
        match self {
            Probe::Copy => false,
            Probe::FmaF32 => operand.is_float(),
            Probe::FmaF16 | Probe::MatrixF16 => matches!(operand, DType::F16 | DType::BF16),
            Probe::MultiplyAddI32 => !operand.is_float(),
            Probe::DotI8 | Probe::MatrixI8 => matches!(operand, DType::I8 | DType::U8),
        }
    }

    fn build(self) -> &'static str {
        match self {
            Probe::Copy => "probe_copy",
            Probe::FmaF32 => "probe_fma_f32",
            Probe::FmaF16 => "probe_fma_f16",
            Probe::MultiplyAddI32 => "probe_multiply_add_i32",
            Probe::DotI8 => "probe_dot_i8",
            Probe::MatrixF16 => "probe_matrix_f16",
            Probe::MatrixI8 => "probe_matrix_i8",
        }
    }

    /// What the device must have; the words say what it lacks.
    fn needs(self, target: &Capabilities) -> Result<Needs, Unfit> {
        let matrix = |operand, sum| {
            let shape = matrix(target, operand, sum)?;
            let features = FeatureSet::from_iter([Feature::VulkanMemoryModel])
                .with(Feature::ShaderFloat16, operand == ComponentType::F16)
                .with(Feature::ShaderInt8, operand == ComponentType::I8);
            Ok(Needs { matrix: Some(shape), features, ..Needs::default() })
        };
        match self {
            Probe::Copy | Probe::FmaF32 | Probe::MultiplyAddI32 => Ok(Needs::default()),
            Probe::FmaF16 => {
                Ok(Needs { features: FeatureSet::from_iter([Feature::ShaderFloat16]), ..Needs::default() })
            }
            Probe::DotI8 => Ok(Needs { packed_dot_product: true, vulkan: Some((1, 3)), ..Needs::default() }),
            Probe::MatrixF16 => matrix(ComponentType::F16, ComponentType::F32),
            Probe::MatrixI8 => matrix(ComponentType::I8, ComponentType::I32),
        }
    }

    /// Copies of `bytes`, a multiple of 16, each invocation `per` (1 to 8) times 16 of them.
    ///
    /// # Errors
    /// There are more than kernels can count.
    pub fn copy(bytes: u64, per: u32) -> Result<ProbePlan, Unfit> {
        let words = fixed("a number of 16-byte words", bytes / 16)?;
        let groups = words.div_ceil(LANES * per);
        let rows = groups.div_ceil(MOST_GROUPS).max(1);
        let step = Step {
            module: module(Probe::Copy.build())?,
            constants: vec![LANES, per],
            push: vec![words.into()],
            bindings: vec![Slot::Input(0), Slot::Output(0)],
            grid: [groups.div_ceil(rows), rows, 1].map(Size::from),
            subgroup_size: 0,
        };
        let moved = 2.0 * (f64::from(words) * 16.0);
        Ok(ProbePlan { plan: Plan::of(step), output_bytes: bytes, flops: 0.0, bytes: moved })
    }

    /// Arithmetic of `groups` workgroups with `rounds` rounds each.
    ///
    /// # Errors
    /// Says what the target lacks.
    pub fn arithmetic(self, target: &Capabilities, groups: u32, rounds: u32) -> Result<ProbePlan, Unfit> {
        let needs = self.needs(target)?;
        let missing = needs.missing(target);
        if !missing.is_empty() {
            return Err(Unfit(format!("needs {}", missing.join("; "))));
        }
        let invocations = f64::from(groups) * f64::from(LANES);
        let mut constants = vec![LANES, rounds];
        let (flops, output_bytes, push) = match (self, needs.matrix) {
            (_, Some(shape)) => {
                constants.extend([shape.m, shape.n, shape.k]);
                // The least subgroup size makes the most subgroups, and the most memory that may be written.
                let least = target.subgroup.sizes.iter().min().copied().unwrap_or(1).max(1);
                let usual = target.subgroup.preferred.unwrap_or(least);
                let product = 2.0 * f64::from(shape.m) * f64::from(shape.n) * f64::from(shape.k);
                let subgroups = invocations / f64::from(usual);
                let most = u64::from(groups) * u64::from(LANES.div_ceil(least));
                let results = most * u64::from(shape.m) * u64::from(shape.n);
                (subgroups * f64::from(rounds) * 4.0 * product, results * 4, self.factors())
            }
            _ => {
                let each = match self {
                    Probe::DotI8 => 8.0 * 8.0,
                    Probe::FmaF16 => 32.0 * 4.0,
                    _ => 32.0 * 2.0,
                };
                (
                    invocations * f64::from(rounds) * each,
                    u64::from(groups) * u64::from(LANES) * 4,
                    self.factors(),
                )
            }
        };
        let step = Step {
            module: module(self.build())?,
            constants,
            push: push.into_iter().map(Size::from).collect(),
            bindings: vec![Slot::Output(0)],
            grid: [groups, 1, 1].map(Size::from),
            subgroup_size: 0,
        };
        Ok(ProbePlan { plan: Plan::of(step), output_bytes, flops, bytes: 0.0 })
    }

    /// Operands that keep sums finite and are no special case of any hardware.
    fn factors(self) -> Vec<u32> {
        match self {
            Probe::MultiplyAddI32 => vec![0x0001_4B3D, 0x2F],
            Probe::DotI8 => vec![0x0102_0304, 0x0301_0201],
            Probe::MatrixI8 => vec![3, 5],
            _ => vec![0.999f32.to_bits(), 0.001f32.to_bits()],
        }
    }
}

fn module(build: &str) -> Result<crate::Module, Unfit> {
    library::module(build).ok_or_else(|| Unfit(format!("has no build '{build}'")))
}

/// The largest shape of cooperative matrices with these types.
fn matrix(target: &Capabilities, operand: ComponentType, sum: ComponentType) -> Result<MatrixShape, Unfit> {
    let fits = |shape: &&MatrixShape| {
        shape.a == operand && shape.b == operand && shape.c == sum && shape.result == sum
    };
    let size = |shape: &&MatrixShape| shape.m * shape.n * shape.k;
    let shape = target.cooperative_matrix.iter().filter(fits).max_by_key(size);
    shape.copied().ok_or_else(|| Unfit(format!("needs cooperative matrices of {}", operand.name())))
}

#[cfg(test)]
mod tests {
    use halite_targets::Target;

    use super::*;

    #[test]
    fn every_device_has_the_plain_probes_and_says_what_it_lacks_for_others() {
        let target = Capabilities::of(Target::parse("cpu-swiftshader-unknown").unwrap());
        for probe in [Probe::FmaF32, Probe::MultiplyAddI32] {
            assert_eq!(probe.arithmetic(&target, 1, 1).unwrap().flops, 128.0 * 64.0);
        }
        let error = Probe::MatrixF16.arithmetic(&target, 1, 1).unwrap_err();
        assert!(error.0.contains("f16"), "{error}");
    }

    #[test]
    fn hopper_has_matrices() {
        let target = Capabilities::of(Target::parse("hopper-h200-linux").unwrap());
        let plan = Probe::MatrixF16.arithmetic(&target, 1, 1).unwrap();
        // Four subgroups, four products each.
        assert_eq!(plan.flops, 4.0 * 4.0 * 2.0 * f64::from(16 * 16 * 16));
    }

    #[test]
    fn copies_cover_every_word() {
        for (bytes, per) in [(16, 1), (4096, 4), (1 << 28, 1), (1 << 30, 8)] {
            let plan = Probe::copy(bytes, per).unwrap();
            let [x, y, _] = plan.plan.steps[0].grid;
            assert!(x * y * u64::from(LANES * per) * 16 >= bytes);
            assert!(x <= MOST_GROUPS && y <= MOST_GROUPS);
        }
    }
}
