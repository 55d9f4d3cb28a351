//! Loops and scans of many runs, whose number is known: a node whose body does some runs one behind the other. Put in run by run, all of
//! them would have to be compiled.

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{
    Result,
    importer::{Importer, Site},
    runs::{Repeat, Run},
    value::stack,
};
use crate::{
    build::Range,
    graph::{ElementType, TensorId},
};

/// Most operations that the runs of a loop become where these are put in one by one.
const MOST_OPERATIONS: u64 = 4096;
/// About how many operations a body has that does several runs: beside them, what the host does for each turn is little.
const OPERATIONS: u64 = 256;
/// Most runs of a body.
const MOST_TOGETHER: u64 = 64;
/// Loops of fewer runs are put in run by run whatever they become.
const MANY: u64 = 32;

/// The number of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Known(u64),
    /// In a turn of the node: its number, how many runs a turn has, and which of them this is.
    InTurn(TensorId, u64, u64),
}

impl Number {
    /// The number as a tensor.
    pub(super) fn tensor(self, importer: &mut Importer<'_>) -> Result<TensorId> {
        let number = |value: u64| Operand::Constant(Scalar::Int(value.cast_signed(), DType::I64));
        match self {
            Number::Known(run) => {
                importer.builder.values(DType::I64, &[], &Values::Int(vec![run.cast_signed()]))
            }
            Number::InTurn(turn, each, run) => importer.builder.map(&[turn], DType::I64, |p, x| {
                let first = p.call(Function::Mul, &[x[0], number(each)]);
                p.call(Function::Add, &[first, number(run)])
            }),
        }
    }
}

/// What is done again and again.
pub(super) struct Rolled {
    /// How many runs there are.
    pub(super) runs: u64,
    /// What the first run is given.
    pub(super) carried: Vec<TensorId>,
    /// What each run is given the next part of: as many along the first axis as there are runs.
    pub(super) walked: Vec<TensorId>,
    /// How many values each run gives that are joined along a new first axis.
    pub(super) gathered: usize,
}

/// Imports one run: its number, the condition that it is given, what is carried, its parts of what is walked.
type Body<'a, 'm> = dyn Fn(&mut Importer<'m>, Number, TensorId, &[TensorId], &[TensorId]) -> Result<Run> + 'a;

/// Runs one behind the other.
struct Line<'a> {
    /// The condition that each is given.
    go: TensorId,
    runs: std::ops::Range<u64>,
    number: &'a dyn Fn(u64) -> Number,
    /// What the first is given.
    carried: &'a [TensorId],
    /// What they are given parts of, which are at their numbers.
    walked: &'a [TensorId],
}

impl Rolled {
    /// What is carried behind the last run, and the joined values. None where the runs put in one by one are not much, and where that
    /// takes runs one by one: what is carried changes its type or sizes, a condition may end the loop, random numbers are drawn, or the host would
    /// have to look at something in each run.
    pub(super) fn as_node<'m>(
        &self,
        importer: &mut Importer<'m>,
        site: &Site<'m>,
        body: &Body<'_, 'm>,
    ) -> Result<Option<Vec<TensorId>>> {
        if self.runs < MANY {
            return Ok(None);
        }
        let (mark, drawn) = (importer.builder.mark(), importer.builder.drawn());
        let each = self.together(importer, site, body).ok().flatten();
        // Turns would draw the same random numbers again.
        let each = each.filter(|_| importer.builder.drawn() == drawn);
        if let Some(each) = each {
            importer.builder.rollback(mark);
            if let Ok(Some(made)) = self.in_turns(importer, site, each, body) {
                return Ok(Some(made));
            }
        }
        // Runs that are put in one by one tell what is wrong.
        importer.builder.watch().check()?;
        importer.builder.rollback(mark);
        importer.builder.draw_again(drawn);
        Ok(None)
    }

    /// How many runs a turn should have; none where all of them would not become much.
    fn together<'m>(
        &self,
        importer: &mut Importer<'m>,
        site: &Site<'m>,
        body: &Body<'_, 'm>,
    ) -> Result<Option<u64>> {
        let go = importer.builder.values(ElementType::Bool, &[], &Values::Int(vec![1]))?;
        let walked = &self.walked;
        let line = |runs, carried| Line { go, runs, number: &Number::Known, carried, walked };
        // The first run may know more than others.
        let first = self.several(importer, site, &line(0..1, &self.carried), body)?;
        let before = importer.builder.nodes();
        self.several(importer, site, &line(1..2, &first.carried), body)?;
        let operations = (importer.builder.nodes() - before) as u64;
        let is_much = operations > 0 && self.runs.saturating_mul(operations) > MOST_OPERATIONS;
        Ok(is_much.then(|| (OPERATIONS / operations).clamp(1, MOST_TOGETHER.min(self.runs))))
    }

    /// The same with so many runs in a turn of the node, and the rest behind it.
    fn in_turns<'m>(
        &self,
        importer: &mut Importer<'m>,
        site: &Site<'m>,
        each: u64,
        body: &Body<'_, 'm>,
    ) -> Result<Option<Vec<TensorId>>> {
        let turns = self.runs / each;
        let blocks: Result<Vec<TensorId>> =
            self.walked.iter().map(|walked| blocks(importer, *walked, turns, each)).collect();
        let blocks = blocks?;
        let most = importer.builder.values(DType::I64, &[], &Values::Int(vec![turns.cast_signed()]))?;
        let repeat = Repeat {
            most: Some(most),
            condition: None,
            carried: self.carried.clone(),
            gathered: self.gathered,
            runs: Some(turns),
        };
        let made = repeat.as_node(importer, site, &|importer, [turn, go], carried| {
            let mut parts = Vec::new();
            for block in &blocks {
                parts.push(importer.builder.gather(*block, turn, 0)?);
            }
            let number = |run| Number::InTurn(turn, each, run);
            let line = Line { go, runs: 0..each, number: &number, carried, walked: &parts };
            self.several(importer, site, &line, body)
        })?;
        let Some(mut outputs) = made else { return Ok(None) };
        let rows = outputs.split_off(self.carried.len());
        let go = importer.builder.values(ElementType::Bool, &[], &Values::Int(vec![1]))?;
        let first = turns * each;
        let (carried, walked) = (&outputs, &self.walked);
        let line = Line { go, runs: first..self.runs, number: &Number::Known, carried, walked };
        let run = self.several(importer, site, &line, body)?;
        importer.builder.at(site.location.clone());
        let mut results = run.carried;
        for (index, rows) in rows.into_iter().enumerate() {
            let b = &mut importer.builder;
            // By turns, by the runs of a turn.
            let mut sizes = b.sizes(rows)[1..].to_vec();
            sizes[0] = first.into();
            let mut all = vec![b.reshape_to(rows, &sizes)?];
            all.extend(run.gathered.get(index));
            results.push(b.concat(&all, 0)?);
        }
        Ok(Some(results))
    }

    /// Runs one behind the other. What they gather is joined; nothing where there are none.
    fn several<'m>(
        &self,
        importer: &mut Importer<'m>,
        site: &Site<'m>,
        line: &Line<'_>,
        body: &Body<'_, 'm>,
    ) -> Result<Run> {
        let go = line.go;
        let mut all = Run { condition: go, carried: line.carried.to_vec(), gathered: Vec::new() };
        let mut gathered: Vec<Vec<TensorId>> = vec![Vec::new(); self.gathered];
        for run in line.runs.clone() {
            importer.builder.watch().check()?;
            let mut parts = Vec::new();
            for walked in line.walked {
                parts.push(place(importer, *walked, 0, run)?);
            }
            let made = body(importer, (line.number)(run), go, &all.carried, &parts)?;
            gathered.iter_mut().zip(made.gathered).for_each(|(all, value)| all.push(value));
            all.carried = made.carried;
            if made.condition != go
                && importer.builder.ints(made.condition).is_none_or(|all| all.contains(&0))
            {
                all.condition = made.condition;
            }
        }
        importer.builder.at(site.location.clone());
        for values in gathered.iter().filter(|values| !values.is_empty()) {
            all.gathered.push(stack(&mut importer.builder, values, 0)?);
        }
        Ok(all)
    }
}

/// What all whole turns walk, by turns and runs.
fn blocks(importer: &mut Importer<'_>, walked: TensorId, turns: u64, each: u64) -> Result<TensorId> {
    let b = &mut importer.builder;
    let sizes = b.sizes(walked).to_vec();
    let mut ranges: Vec<Range<Size>> = sizes.iter().map(|size| Range::all(*size)).collect();
    ranges[0].count = (turns * each).into();
    let whole = b.slice(walked, &ranges)?;
    let sizes: Vec<Size> =
        [turns.into(), each.into()].into_iter().chain(sizes[1..].iter().copied()).collect();
    b.reshape_to(whole, &sizes)
}

/// The place with a number along an axis, which is dropped.
pub(super) fn place(importer: &mut Importer<'_>, tensor: TensorId, axis: usize, at: u64) -> Result<TensorId> {
    let b = &mut importer.builder;
    let mut dims = b.sizes(tensor).to_vec();
    let mut ranges: Vec<Range<Size>> = dims.iter().map(|size| Range::all(*size)).collect();
    ranges[axis] = Range { start: at.into(), step: 1, count: 1.into() };
    dims.remove(axis);
    let part = b.slice(tensor, &ranges)?;
    b.reshape_to(part, &dims)
}
