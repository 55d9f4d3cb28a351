//! Subgroup operations: their names, their bits in Vulkan, and the capabilities of SPIR-V that need them.

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

/// An operation with its name, the name of its bit, and the capabilities of SPIR-V that need it.
type Row = (SubgroupOp, &'static str, &'static str, &'static [&'static str]);

const ROWS: [Row; 10] = [
    (SubgroupOp::Basic, "basic", "VK_SUBGROUP_FEATURE_BASIC_BIT", &["GroupNonUniform"]),
    (SubgroupOp::Vote, "vote", "VK_SUBGROUP_FEATURE_VOTE_BIT", &["GroupNonUniformVote", "SubgroupVoteKHR"]),
    (
        SubgroupOp::Arithmetic,
        "arithmetic",
        "VK_SUBGROUP_FEATURE_ARITHMETIC_BIT",
        &["GroupNonUniformArithmetic"],
    ),
    (
        SubgroupOp::Ballot,
        "ballot",
        "VK_SUBGROUP_FEATURE_BALLOT_BIT",
        &["GroupNonUniformBallot", "SubgroupBallotKHR"],
    ),
    (SubgroupOp::Shuffle, "shuffle", "VK_SUBGROUP_FEATURE_SHUFFLE_BIT", &["GroupNonUniformShuffle"]),
    (
        SubgroupOp::ShuffleRelative,
        "shuffle_relative",
        "VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT",
        &["GroupNonUniformShuffleRelative"],
    ),
    (SubgroupOp::Clustered, "clustered", "VK_SUBGROUP_FEATURE_CLUSTERED_BIT", &["GroupNonUniformClustered"]),
    (SubgroupOp::Quad, "quad", "VK_SUBGROUP_FEATURE_QUAD_BIT", &["GroupNonUniformQuad"]),
    (SubgroupOp::Rotate, "rotate", "VK_SUBGROUP_FEATURE_ROTATE_BIT", &["GroupNonUniformRotateKHR"]),
    (SubgroupOp::RotateClustered, "rotate_clustered", "VK_SUBGROUP_FEATURE_ROTATE_CLUSTERED_BIT", &[]),
];

impl SubgroupOp {
    fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.0 == self).expect("the table has a row for every operation")
    }

    /// The name of its `VkSubgroupFeatureFlagBits`.
    pub fn vulkan_name(self) -> &'static str {
        self.row().2
    }

    /// The operations that a capability of SPIR-V stands for.
    pub(crate) fn of_capability(name: &str) -> Option<SubgroupOp> {
        ROWS.iter().find(|row| row.3.contains(&name)).map(|row| row.0)
    }
}

/// A set of subgroup operations.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct SubgroupOps(u32);

impl SubgroupOps {
    /// The set with these `VkSubgroupFeatureFlags`; bits that kernels do not use are left out.
    pub fn from_vulkan(flags: u32) -> Self {
        SubgroupOps(ROWS.iter().map(|row| row.0 as u32).filter(|bit| flags & bit != 0).sum())
    }

    /// Whether an operation is in the set.
    pub fn has(self, op: SubgroupOp) -> bool {
        self.0 & op as u32 != 0
    }

    /// Names of the operations in the set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        ROWS.iter().filter(move |row| self.has(row.0)).map(|row| row.1)
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
            let known = ROWS.iter().find(|row| row.1 == name);
            let row = known.ok_or_else(|| {
                let valid = ROWS.map(|row| row.1).join(", ");
                format!("'{name}' is no subgroup operation; there are {valid}")
            })?;
            set.0 |= row.0 as u32;
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_row() {
        for row in &ROWS {
            assert_eq!(row.0.vulkan_name(), row.2);
            assert!(row.3.iter().all(|name| SubgroupOp::of_capability(name) == Some(row.0)));
        }
        let all = SubgroupOps::from_vulkan(u32::MAX);
        assert_eq!(all.names().count(), ROWS.len());
        assert!(SubgroupOps::try_from(vec!["sort".to_owned()]).unwrap_err().contains("rotate_clustered"));
    }
}
