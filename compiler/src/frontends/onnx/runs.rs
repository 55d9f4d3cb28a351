//! Loops as nodes with a region: whose number of runs is not known when a model is compiled, or is large. Where it is not known, what is
//! carried may change its sizes from run to run, and what each run gives is joined. Where it is, each run writes its rows to their
//! places among those of all.

use halite_ops::{DType, Operation, Values, numbers::Numbers, scatters::Reduction};
use halite_sizes::Size;

use super::{
    Result,
    importer::{Importer, Site},
};
use crate::{
    CompileError,
    build::{Builder, MOST_SIZE},
    graph::{ElementType, NodeOp, TensorId},
};

/// Most times that a body is looked at to find which sizes change.
const MOST_LOOKS: usize = 8;

/// What a loop begins with.
pub(super) struct Repeat {
    /// The most runs, a number.
    pub(super) most: Option<TensorId>,
    /// Whether there is a first run.
    pub(super) condition: Option<TensorId>,
    /// What the first run is given.
    pub(super) carried: Vec<TensorId>,
    /// How many values each run gives that are joined.
    pub(super) gathered: usize,
    /// The number of runs, where it is known and no condition ends them earlier.
    pub(super) runs: Option<u64>,
}

/// What a run gives.
pub(super) struct Run {
    /// Whether there is another run.
    pub(super) condition: TensorId,
    /// What the next one is given.
    pub(super) carried: Vec<TensorId>,
    /// Values that are joined with those of the other runs.
    pub(super) gathered: Vec<TensorId>,
}

/// Imports one run, given its number and the condition, and what is carried.
type Body<'a, 'm> = dyn Fn(&mut Importer<'m>, [TensorId; 2], &[TensorId]) -> Result<Run> + 'a;

/// A tensor's type and sizes.
type Type = (ElementType, Vec<Size>);

/// What is carried: how it begins, and which of its sizes change.
struct Carried {
    initial: TensorId,
    types: Type,
    changes: Vec<bool>,
}

impl Carried {
    fn new(importer: &Importer<'_>, initial: TensorId) -> Self {
        let types = importer.type_of(initial);
        Carried { initial, changes: vec![false; types.1.len()], types }
    }

    /// The type with symbols for the sizes that change.
    fn with(&self, symbols: &mut impl Iterator<Item = Size>) -> Type {
        let own = self.types.1.iter().zip(&self.changes);
        let sizes = own.map(|(size, changes)| if *changes { symbols.next().unwrap_or(*size) } else { *size });
        (self.types.0, sizes.collect())
    }

    /// Notes which sizes of what a run gives are others than those that it was given. None where it is of another type.
    fn compare(&mut self, given: &Type, made: &Type) -> Option<bool> {
        if given.0 != made.0 || given.1.len() != made.1.len() {
            return None;
        }
        let mut is_new = false;
        for ((given, made), changes) in given.1.iter().zip(&made.1).zip(&mut self.changes) {
            let same = given.is(*made) || !given.is_data() && !made.is_data() && given == made;
            if !same && !*changes {
                (*changes, is_new) = (true, true);
            }
        }
        Some(is_new)
    }
}

/// Sizes that change, as symbols: in the loop, and behind it.
struct Symbols {
    /// What a run is given.
    inside: Vec<Size>,
    /// What the last run gave.
    behind: Vec<Size>,
}

/// What a run is given: its number, whether it goes on, and what is carried.
fn parameters(carried: &[Type]) -> Vec<Type> {
    let mut all = vec![(ElementType::Of(DType::I64), vec![]), (ElementType::Bool, vec![])];
    all.extend(carried.iter().cloned());
    all
}

impl Repeat {
    /// The loop as a node: what is carried behind the last run, and the joined values. None where what is carried changes its
    /// type, or where sizes cannot be such that data decide. With a known number of runs also where what is carried changes its
    /// sizes, where a condition is looked at, or where a run waits for the host.
    pub(super) fn as_node<'m>(
        &self,
        importer: &mut Importer<'m>,
        site: &Site<'m>,
        body: &Body<'_, 'm>,
    ) -> Result<Option<Vec<TensorId>>> {
        let mut mark = importer.builder.mark();
        let mut carried: Vec<Carried> = self.carried.iter().map(|id| Carried::new(importer, *id)).collect();
        // Joined values begin as none: of which type and sizes is known when a run was looked at.
        let mut knows_rows = self.gathered == 0;
        for _ in 0..MOST_LOOKS {
            importer.builder.rollback(mark);
            importer.builder.at(site.location.clone());
            let before = importer.builder.symbols();
            let Some(symbols) = self.symbols(importer, &carried)? else { return Ok(None) };
            let mut inside = symbols.inside.iter().copied();
            let given: Vec<Type> = carried.iter().map(|one| one.with(&mut inside)).collect();
            let arguments = importer.builder.region(&parameters(&given))?;
            importer.builder.set(&symbols.inside, &symbols.behind)?;
            let run = body(importer, [arguments[0], arguments[1]], &arguments[2..][..self.carried.len()])?;
            importer.builder.at(site.location.clone());
            if !knows_rows {
                knows_rows = true;
                let rows: Vec<Type> = run.gathered.iter().map(|id| importer.type_of(*id)).collect();
                importer.builder.rollback(mark);
                for row in rows {
                    carried.push(self.first_joined(importer, site, &row, before)?);
                }
                mark = importer.builder.mark();
                continue;
            }
            let made = self.joined(importer, &run, arguments[0], &arguments[2..])?;
            let mut is_known = true;
            for ((one, given), made) in carried.iter_mut().zip(&given).zip(&made) {
                match one.compare(given, &importer.type_of(*made)) {
                    None => return Ok(None),
                    Some(true) if self.runs.is_some() => return Ok(None),
                    Some(is_new) => is_known &= !is_new,
                }
            }
            if is_known {
                let goes_on = run.condition == arguments[1];
                if self.runs.is_some() && (!goes_on || importer.builder.waits()) {
                    return Ok(None);
                }
                return self.close(importer, &carried, &symbols, &arguments, &run, made).map(Some);
            }
        }
        Ok(None)
    }

    /// What joined values of this type are before the first run, whose symbols are those from `before` on.
    fn first_joined(
        &self,
        importer: &mut Importer<'_>,
        site: &Site<'_>,
        row: &Type,
        before: usize,
    ) -> Result<Carried> {
        if row.1.iter().any(|size| size.symbols().iter().any(|own| *own as usize >= before)) {
            let reason = "a loop that joins values of its runs whose sizes are computed in it";
            return Err(CompileError::unsupported(&site.location, reason));
        }
        match self.runs {
            Some(runs) => all_of(importer, row, runs),
            None => none_of(importer, row),
        }
    }

    /// Symbols for the sizes that change, which have their first values. None where the front end has no such sizes.
    fn symbols(&self, importer: &mut Importer<'_>, carried: &[Carried]) -> Result<Option<Symbols>> {
        let changing = |one: &Carried| {
            let sizes = one.types.1.iter().zip(&one.changes);
            sizes.filter(|(_, changes)| **changes).map(|(size, _)| *size).collect::<Vec<Size>>()
        };
        let first: Vec<Size> = carried.iter().flat_map(changing).collect();
        let b = &mut importer.builder;
        let all = |b: &mut Builder, what: &str| -> Option<Vec<Size>> {
            first.iter().map(|_| b.size_of_data(what, 0, MOST_SIZE)).collect()
        };
        let Some(behind) = all(b, "a size behind the runs") else { return Ok(None) };
        let Some(inside) = all(b, "a size that a run is given") else { return Ok(None) };
        b.set(&behind, &first)?;
        Ok(Some(Symbols { inside, behind }))
    }

    /// What is carried to the next run, with the values that are joined so far: those of the run with this number come to them.
    fn joined(
        &self,
        importer: &mut Importer<'_>,
        run: &Run,
        number: TensorId,
        given: &[TensorId],
    ) -> Result<Vec<TensorId>> {
        let b = &mut importer.builder;
        let mut made = run.carried.clone();
        for (row, so_far) in run.gathered.iter().zip(&given[self.carried.len()..]) {
            let mut sizes = b.sizes(*row).to_vec();
            sizes.insert(0, 1.into());
            let row = b.reshape_to(*row, &sizes)?;
            made.push(match self.runs {
                Some(_) => {
                    let place = b.reshape(number, &[1, 1])?;
                    b.scatter_nd([*so_far, place, row], Reduction::None)?
                }
                None => b.concat(&[*so_far, row], 0)?,
            });
        }
        Ok(made)
    }

    fn close(
        &self,
        importer: &mut Importer<'_>,
        carried: &[Carried],
        symbols: &Symbols,
        arguments: &[TensorId],
        run: &Run,
        made: Vec<TensorId>,
    ) -> Result<Vec<TensorId>> {
        let b = &mut importer.builder;
        let starts = self.condition.is_none_or(|id| b.ints(id).is_some_and(|all| all.first() != Some(&0)));
        // A condition that is handed on as it was given stays as it begins.
        let condition = match run.condition == arguments[1] && starts {
            true => b.values(ElementType::Bool, &[], &Values::Int(vec![1]))?,
            false => b.reshape(run.condition, &[])?,
        };
        let next: Vec<Size> = carried
            .iter()
            .zip(&made)
            .flat_map(|(one, id)| {
                let sizes = b.sizes(*id).iter().zip(&one.changes);
                sizes.filter(|(_, changes)| **changes).map(|(size, _)| *size).collect::<Vec<Size>>()
            })
            .collect();
        let results: Result<Vec<TensorId>> =
            std::iter::once(condition).chain(made).map(|id| b.written(id)).collect();
        let results = results?;
        b.set(&symbols.behind, &next)?;
        let region = b.close(&results);
        let most = match self.most {
            Some(most) => b.cast(most, DType::I64)?,
            None => b.values(DType::I64, &[], &Values::Int(vec![i64::MAX]))?,
        };
        let most = b.reshape(most, &[])?;
        let most = b.written(most)?;
        let first = match self.condition {
            Some(condition) => b.reshape(condition, &[])?,
            None => b.values(ElementType::Bool, &[], &Values::Int(vec![1]))?,
        };
        let first = b.written(first)?;
        let mut inputs = vec![most, first];
        inputs.extend(carried.iter().map(|one| one.initial));
        let mut behind = symbols.behind.iter().copied();
        let types: Vec<Type> = carried.iter().map(|one| one.with(&mut behind)).collect();
        b.push(NodeOp::Loop(Box::new(region)), &inputs, &types)
    }
}

/// No values of runs that have been joined so far, each of a type: their number changes.
fn none_of(importer: &mut Importer<'_>, (element, row): &Type) -> Result<Carried> {
    let none = importer.builder.constant("", *element, &[0], bytes::Bytes::new())?;
    let sizes: Vec<Size> = std::iter::once(0.into()).chain(row.iter().copied()).collect();
    // A constant would fix the other sizes.
    let initial = importer.builder.push(NodeOp::View, &[none], &[(*element, sizes.clone())])?[0];
    let mut changes = vec![false; sizes.len()];
    changes[0] = true;
    Ok(Carried { initial, types: (*element, sizes), changes })
}

/// The place for the values of all runs, each of a type: each run writes its own.
fn all_of(importer: &mut Importer<'_>, (element, row): &Type, runs: u64) -> Result<Carried> {
    let b = &mut importer.builder;
    // Known zeros would be in the module, as many as there are elements.
    let zero = Operation::Numbers(Numbers { values: vec![0.into()] });
    let zero = b.push(NodeOp::Operation(zero), &[], &[(DType::I64.into(), vec![1u64])])?[0];
    let zero = b.cast(zero, *element)?;
    let sizes: Vec<Size> = std::iter::once(runs.into()).chain(row.iter().copied()).collect();
    let initial = b.expand_to(zero, &sizes)?;
    Ok(Carried { initial, changes: vec![false; sizes.len()], types: (*element, sizes) })
}
