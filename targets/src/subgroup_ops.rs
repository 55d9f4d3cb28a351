//! Owns the set of subgroup operations, under their Vulkan names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A group of subgroup operations. The discriminant is its `VkSubgroupFeatureFlagBits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SubgroupOp {
    /// Elect, barriers.
    Basic = 1,
    /// Any, all.
    Vote = 2,
    /// Reductions and scans.
    Arithmetic = 4,
    /// Ballots and broadcasts.
    Ballot = 8,
    /// Shuffles.
    Shuffle = 0x10,
    /// Shuffles up and down.
    ShuffleRelative = 0x20,
    /// Reductions in parts of the subgroup.
    Clustered = 0x40,
    /// Operations of four neighbours.
    Quad = 0x80,
    /// Rotations.
    Rotate = 0x200,
    /// Rotations in parts of the subgroup.
    RotateClustered = 0x400,
}

const NAMES: [(SubgroupOp, &str); 10] = [
    (SubgroupOp::Basic, "basic"),
    (SubgroupOp::Vote, "vote"),
    (SubgroupOp::Arithmetic, "arithmetic"),
    (SubgroupOp::Ballot, "ballot"),
    (SubgroupOp::Shuffle, "shuffle"),
    (SubgroupOp::ShuffleRelative, "shuffle_relative"),
    (SubgroupOp::Clustered, "clustered"),
    (SubgroupOp::Quad, "quad"),
    (SubgroupOp::Rotate, "rotate"),
    (SubgroupOp::RotateClustered, "rotate_clustered"),
];

/// A set of subgroup operations.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct SubgroupOps(u32);

impl SubgroupOps {
    /// The set with these `VkSubgroupFeatureFlags`; bits that kernels do not use are left out.
    pub fn from_vulkan(flags: u32) -> Self {
        SubgroupOps(NAMES.iter().map(|(op, _)| *op as u32).filter(|bit| flags & bit != 0).sum())
    }

    /// Whether an operation is in the set.
    pub fn has(self, op: SubgroupOp) -> bool {
        self.0 & op as u32 != 0
    }

    /// Names of the operations in the set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(op, _)| self.has(*op)).map(|(_, name)| name)
    }

    /// The operations of this set that are not in another.
    pub fn without(self, other: SubgroupOps) -> SubgroupOps {
        SubgroupOps(self.0 & !other.0)
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for SubgroupOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl From<SubgroupOps> for Vec<String> {
    fn from(ops: SubgroupOps) -> Self {
        ops.names().map(str::to_owned).collect()
    }
}

impl TryFrom<Vec<String>> for SubgroupOps {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, String> {
        let mut set = SubgroupOps::default();
        for name in names {
            let known = NAMES.iter().find(|(_, n)| *n == name);
            let (op, _) = known.ok_or_else(|| format!("'{name}' is no subgroup operation"))?;
            set.0 |= *op as u32;
        }
        Ok(set)
    }
}
