//! The repair of kernels that exchange memory in lockstep: fewer invocations where that helps, then barriers.

use spirv::Op;

use super::{
    access::Unknown,
    barrier::barrier,
    hazard::Analysis,
    shrink::{shrink, smaller_size},
    split::split,
};
use crate::{
    decorations::Decorations, edit::Editor, entry::Entry, module::Inst, program::ParsedModule,
    validate::validated, words::literal_text,
};

/// More places than this are too many to choose from.
const MAX_PLACES: usize = 256;

/// A kernel without hazards.
pub(super) struct Repaired {
    pub words: Vec<u32>,
    /// The smaller workgroup size, if replicas were left out.
    pub local_size: Option<[u32; 3]>,
    pub barriers: usize,
    /// Branches taken apart to make places for barriers.
    pub splits: usize,
}

impl Repaired {
    /// What was done, for a log.
    pub fn what(&self, before: [u32; 3]) -> String {
        let barriers = match self.barriers {
            1 => "1 barrier inserted".to_owned(),
            n => format!("{n} barriers inserted"),
        };
        let barriers = match self.splits {
            0 => barriers,
            1 => format!("1 branch taken apart, {barriers}"),
            n => format!("{n} branches taken apart, {barriers}"),
        };
        let size = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        match self.local_size {
            None => barriers,
            Some(after) => {
                let shrunk = format!("its workgroup of {} repeats work, {} does", size(before), size(after));
                if self.barriers == 0 { shrunk } else { format!("{shrunk}; {barriers}") }
            }
        }
    }
}

/// Removes every hazard, or says why that cannot be done.
///
/// Replicas go first: what they exchange needs no barrier once only one of them is left.
pub(super) fn repair(
    program: &ParsedModule<'_>,
    entry: &Entry,
    decorations: &Decorations<'_>,
    analysis: &Result<Option<Analysis<'_, '_>>, Unknown>,
) -> Result<Repaired, Unknown> {
    let Some(local_size) = smaller_size(program, entry, decorations) else {
        return match analysis {
            Ok(Some(analysis)) => insert_barriers(analysis, &entry.name),
            Ok(None) => Ok(Repaired {
                words: program.module.words().to_vec(),
                local_size: None,
                barriers: 0,
                splits: 0,
            }),
            Err(why) => Err(why.clone()),
        };
    };
    let words = shrink(program, entry, local_size).map_err(|e| e.to_string())?;
    let program = validated(&words).map_err(|e| format!("the smaller module is not valid: {e}"))?;
    let entry = program.entry(&entry.name).map_err(|e| e.to_string())?;
    let repaired = match Analysis::of(&program, entry, &Decorations::read(&program.module))? {
        Some(analysis) if !analysis.hazards(&[]).is_empty() => insert_barriers(&analysis, &entry.name)?,
        _ => Repaired { words: words.clone(), local_size: None, barriers: 0, splits: 0 },
    };
    Ok(Repaired { local_size: Some(local_size), ..repaired })
}

/// Inserts the barriers that remove every hazard, if need be after taking branches apart.
pub(super) fn insert_barriers(analysis: &Analysis<'_, '_>, entry: &str) -> Result<Repaired, Unknown> {
    let why = match insert_at_places(analysis, entry) {
        Err(why) => why,
        done => return done,
    };
    let split = split(analysis.program.module.words(), entry).ok_or_else(|| why.clone())?;
    let program = validated(&split.words).map_err(|e| format!("the split module is not valid: {e}"))?;
    let decorations = Decorations::read(&program.module);
    let entry = program.entry(entry).map_err(|e| e.to_string())?;
    let analysis = Analysis::of(&program, entry, &decorations)?.ok_or(why)?;
    Ok(Repaired { splits: split.count, ..insert_at_places(&analysis, &entry.name)? })
}

fn insert_at_places(analysis: &Analysis<'_, '_>, entry: &str) -> Result<Repaired, Unknown> {
    let chosen = choose(analysis)?;
    let program = analysis.program;
    let places = analysis.places.iter().zip(&chosen).filter(|(_, c)| **c).map(|(p, _)| *p);
    let at: Vec<&Inst> = places.map(|p| &program.module.insts()[p]).collect();
    let uses_buffers = analysis.accesses.iter().any(|a| !a.shared);
    let mut edit = Editor::new(&program.module);
    for place in &at {
        let barrier = barrier(&mut edit, uses_buffers);
        edit.insert_before(place, barrier);
    }
    let words = edit.finish().map_err(|e| e.to_string())?;
    verify(&words, entry)?;
    Ok(Repaired { words, local_size: None, barriers: at.len(), splits: 0 })
}

/// Starts from a barrier at every place and drops those that are not needed, the most expensive first.
fn choose(analysis: &Analysis<'_, '_>) -> Result<Vec<bool>, String> {
    if analysis.places.len() > MAX_PLACES {
        return Err(format!(
            "it has {} places for a barrier, too many to choose from",
            analysis.places.len()
        ));
    }
    let mut chosen = vec![true; analysis.places.len()];
    if let Some(left) = analysis.hazards(&chosen).first() {
        return Err(format!("no barrier can separate {}", describe(analysis, left.first, left.second)));
    }
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    let cost = |place: &usize| {
        let block = analysis.function.block_of_inst(analysis.places[*place]).unwrap_or(0);
        let depth =
            (0..analysis.function.blocks.len()).filter(|header| in_loop_of(analysis, *header, block)).count();
        (depth, usize::from(analysis.function.blocks[block].loop_merge.is_some()))
    };
    order.sort_by_key(|p| std::cmp::Reverse(cost(p)));
    for place in order {
        chosen[place] = false;
        if !analysis.hazards(&chosen).is_empty() {
            chosen[place] = true;
        }
    }
    Ok(chosen)
}

/// Whether the block belongs to the loop with this header: dominated by it, but not by what follows the loop.
fn in_loop_of(analysis: &Analysis<'_, '_>, header: usize, block: usize) -> bool {
    let function = analysis.function;
    function.blocks[header]
        .loop_merge
        .is_some_and(|(merge, _)| function.dominates(header, block) && !function.dominates(merge, block))
}

/// Names two accesses by the variable and the kind of access.
pub(super) fn describe(analysis: &Analysis<'_, '_>, first: usize, second: usize) -> String {
    let module = &analysis.program.module;
    let name = |id: u32| {
        let named = module.insts().iter().find(|i| i.op == Op::Name && module.operands(i)[0] == id);
        let name = named.and_then(|i| literal_text(&module.operands(i)[1..]));
        name.unwrap_or_else(|| format!("%{id}"))
    };
    let (a, b) = (&analysis.accesses[first], &analysis.accesses[second]);
    let verb = |write: bool| if write { "store" } else { "load" };
    let kind = if a.shared { "workgroup" } else { "buffer" };
    let (left, right) = (module.insts()[a.inst].at, module.insts()[b.inst].at);
    format!(
        "the {} at word {left} from the {} at word {right} of {kind} variable `{}`",
        verb(a.write),
        verb(b.write),
        name(a.variable)
    )
}

/// Runs the whole analysis on the result: it must be valid, and have no hazard left.
fn verify(words: &[u32], entry: &str) -> Result<(), String> {
    let program = validated(words).map_err(|e| format!("the repaired module is not valid: {e}"))?;
    let decorations = Decorations::read(&program.module);
    let entry = program.entry(entry).map_err(|e| e.to_string())?;
    match Analysis::of(&program, entry, &decorations)? {
        Some(analysis) if !analysis.hazards(&[]).is_empty() => {
            Err("hazards remain after the repair".to_owned())
        }
        _ => Ok(()),
    }
}
