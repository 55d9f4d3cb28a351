//! What a module tells of its recordings: which operations of the model its commands compute, and what they cost. The attribute
//! [`halite_abi::attribute::COMMANDS`] of a function that makes a recording has it as JSON.

use halite_abi::attribute;
use serde::{Deserialize, Serialize};

use super::{Attr, FunctionSignature, ModuleDef};

/// Where the commands of a recording come from. The recording has a debug group around all its commands, whose name is
/// [`group_name`] of the function, and commands count within it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingNotes {
    /// The operations, in their order.
    pub operations: Vec<OperationNote>,
    /// For each command that does work (no barriers): its operation, as a place in `operations`; `None` for one that only
    /// moves bytes between them.
    pub commands: Vec<Option<u32>>,
    /// What differs between versions for other sizes that share the function; one where there is one version. May lack
    /// versions where there are many.
    pub versions: Vec<VersionNote>,
}

/// An operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationNote {
    /// Where in the model it comes from.
    #[serde(rename = "at")]
    pub location: String,
    /// Name of the operation.
    pub kind: String,
    /// The operation as text, possibly cut.
    pub text: String,
    /// Name of the variant that computes it.
    pub variant: String,
}

/// What a version has of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VersionNote {
    /// Workgroups of each command, zeros for those that are no dispatches; empty where there is one version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<[u32; 3]>,
    /// Of each operation: least arithmetic operations, and least bytes that are read and written.
    pub work: Vec<(f64, f64)>,
}

/// Name of the debug group around the commands that a function records.
pub fn group_name(module: &str, function: &str) -> String {
    format!("{module}.{function}")
}

impl RecordingNotes {
    /// As an attribute of the function that makes the recording.
    pub fn to_attr(&self) -> Attr {
        // Numbers and texts only: there is nothing that could not be written.
        let json = serde_json::to_string(self).unwrap_or_default();
        Attr::new(attribute::COMMANDS, json)
    }

    /// What a function tells; `None` where it tells nothing that can be understood.
    pub fn of(signature: &FunctionSignature) -> Option<Self> {
        let notes: RecordingNotes = serde_json::from_str(signature.attr(attribute::COMMANDS)?).ok()?;
        notes.is_sound().then_some(notes)
    }

    /// What a module tells of the recording whose debug group has this name.
    pub fn find(module: &ModuleDef, group: &str) -> Option<Self> {
        let function = group.strip_prefix(module.name.as_str())?.strip_prefix('.')?;
        let names = &module.debug.as_ref()?.functions;
        let ordinal = names.iter().position(|debug| debug.local_name == function)?;
        Self::of(&module.functions.get(ordinal)?.signature)
    }

    fn is_sound(&self) -> bool {
        let (operations, commands) = (self.operations.len(), self.commands.len());
        self.commands.iter().flatten().all(|place| (*place as usize) < operations)
            && self.versions.iter().all(|version| {
                version.work.len() == operations
                    && (version.grids.is_empty() || version.grids.len() == commands)
                    && version.work.iter().all(|(flops, bytes)| flops.is_finite() && bytes.is_finite())
            })
    }

    /// The operation of a command.
    pub fn operation(&self, command: u32) -> Option<(usize, &OperationNote)> {
        let place = (*self.commands.get(command as usize)?)? as usize;
        Some((place, self.operations.get(place)?))
    }

    /// The version with these workgroups, one entry for each command as far as they are known.
    pub fn version(&self, grids: &[Option<[u32; 3]>]) -> Option<&VersionNote> {
        let fits = |version: &&VersionNote| {
            version.grids.is_empty()
                || version.grids.iter().zip(grids).all(|(own, ran)| ran.is_none_or(|ran| ran == *own))
        };
        self.versions.iter().find(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes() -> RecordingNotes {
        let operation = |location: &str| OperationNote {
            location: location.to_owned(),
            kind: "matmul".to_owned(),
            text: "matmul: \"ä\"\n".to_owned(),
            variant: "matmul.tile".to_owned(),
        };
        let version = |groups: u32| VersionNote {
            grids: vec![[groups, 1, 1], [0; 3], [groups, 2, 1]],
            work: vec![(f64::from(groups), 4.0), (0.5, 2.0)],
        };
        RecordingNotes {
            operations: vec![operation("a"), operation("b")],
            commands: vec![Some(0), None, Some(1)],
            versions: vec![version(4), version(8)],
        }
    }

    fn signature(value: &str) -> FunctionSignature {
        FunctionSignature {
            attrs: vec![Attr::new(attribute::COMMANDS, value)],
            ..FunctionSignature::default()
        }
    }

    #[test]
    fn notes_survive_and_versions_are_told_by_their_workgroups() {
        let notes = notes();
        let attr = notes.to_attr();
        assert!(!attr.value.contains(['\0', '\n']));
        assert_eq!(RecordingNotes::of(&signature(&attr.value)).as_ref(), Some(&notes));
        assert_eq!(notes.operation(2).unwrap().1.location, "b");
        assert_eq!((notes.operation(1), notes.operation(9)), (None, None));
        let grids = |groups| vec![Some([groups, 1, 1]), Some([0; 3]), None];
        assert_eq!(notes.version(&grids(8)).unwrap().work[0].0, 8.0);
        assert_eq!(notes.version(&grids(5)), None);
    }

    #[test]
    fn damaged_notes_are_none() {
        let mut wrong = notes();
        wrong.commands[0] = Some(2);
        let mut short = notes();
        short.versions[1].grids.pop();
        for value in ["", "7", "{}", &wrong.to_attr().value, &short.to_attr().value] {
            assert_eq!(RecordingNotes::of(&signature(value)), None, "{value}");
        }
    }
}
