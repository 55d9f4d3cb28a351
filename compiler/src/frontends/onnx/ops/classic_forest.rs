//! Forests: nodes that compare a feature, and leaves. All trees are walked at once, a level at a time: for each line and tree there is the
//! place of a node, which tables give the next place for. Each comparison is said as "the feature lies between two bounds".

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar, Type},
};
use halite_sizes::Size;

use super::{NodeView, Result};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

/// How a node compares its feature.
pub(super) enum Test {
    AtMost,
    Below,
    AtLeast,
    Above,
    Equal,
    Other,
    /// Whether it is one of these.
    Among(Vec<f64>),
}

/// A node that compares a feature.
pub(super) struct Split {
    pub(super) feature: i64,
    pub(super) threshold: f64,
    pub(super) test: Test,
    /// Whether what is no number goes to the first child.
    pub(super) missing: bool,
    /// Where it goes on if the comparison holds, and else.
    pub(super) children: [usize; 2],
}

/// Trees: `None` is a leaf.
pub(super) struct Forest {
    nodes: Vec<Option<Split>>,
    roots: Vec<usize>,
    /// Steps from a root to the last leaf.
    depth: usize,
    /// Whether thresholds have 64 bits.
    is_double: bool,
}

impl Forest {
    /// Checks that the nodes are trees: each that compares is reached in one way, and so is each leaf, unless leaves may be shared.
    pub(super) fn new(
        node: &NodeView<'_>,
        nodes: Vec<Option<Split>>,
        roots: Vec<usize>,
        is_double: bool,
        shares_leaves: bool,
    ) -> Result<Forest> {
        let mut seen = vec![false; nodes.len()];
        let mut level: Vec<(usize, usize)> = roots.iter().map(|root| (*root, 0)).collect();
        let mut depth = 0;
        while let Some((place, steps)) = level.pop() {
            let split = nodes[place].as_ref();
            if std::mem::replace(&mut seen[place], true) && !(shares_leaves && split.is_none()) {
                return Err(node.invalid("a node of a tree is reached in two ways"));
            }
            depth = depth.max(steps);
            if let Some(split) = split {
                let steps = steps + split.steps();
                level.extend(split.children.map(|child| (child, steps)));
            }
        }
        if roots.is_empty() || !shares_leaves && seen.contains(&false) {
            return Err(node.invalid("nodes of trees are in a circle"));
        }
        Ok(Forest { nodes, roots, depth, is_double })
    }

    /// Nodes and leaves: their places are below this number.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The places of leaves, for each line and tree.
    pub(super) fn walk(&self, b: &mut Builder, node: &NodeView<'_>) -> Result<TensorId> {
        let x = node.input(0)?;
        let dims = b.sizes(x).to_vec();
        let dims: [Size; 2] = match dims[..] {
            [features] => [1.into(), features],
            [lines, features] => [lines, features],
            _ => return Err(node.invalid(format!("{} is no list of lines", b.describe(&[x])))),
        };
        let columns = dims[1];
        let features = self.nodes.iter().flatten().map(|split| split.feature);
        if let Some(feature) = features.clone().find(|feature| {
            u64::try_from(*feature).map_or(true, |at| columns.is_constant() && at >= columns.value())
        }) {
            return Err(node.invalid(format!("a node reads feature {feature} of {}", b.describe(&[x]))));
        }
        let is_double = self.is_double && b.element(x) == ElementType::Of(DType::F64);
        let x = if is_double { b.view(x, DType::I64.into(), &dims)? } else { b.as_f32(x)? };
        let x = b.reshape_to(x, &dims)?;
        let (x, table) =
            if is_double { (keys(b, x)?, self.table(&Double)) } else { (x, self.table(&Single)) };
        table.walk(b, x, &self.roots, self.depth)
    }

    /// Bounds and children of all nodes. Leaves lead to themselves.
    fn table(&self, bounds: &impl Bounds) -> Table {
        let mut table = Table::default();
        for place in 0..self.nodes.len() {
            table.push(f64::NEG_INFINITY, f64::NAN, [place; 2], (0, false));
        }
        for (place, split) in self.nodes.iter().enumerate() {
            if let Some(split) = split {
                table.set(place, split, bounds);
            }
        }
        table.is_double = bounds.is_double();
        table
    }
}

impl Split {
    /// How many comparisons it becomes, one behind the other.
    fn steps(&self) -> usize {
        match &self.test {
            Test::Among(all) => 1 + all.len().max(1).next_power_of_two().ilog2() as usize,
            _ => 1,
        }
    }
}

/// Bounds that features are compared with, in the type that they are compared in.
trait Bounds {
    fn is_double(&self) -> bool;
    /// The largest number that is not above another, or that is below it.
    fn largest(&self, number: f64, below: bool) -> f64;
    /// The smallest that is not below it.
    fn smallest(&self, number: f64) -> f64;
}

struct Double;
struct Single;

impl Bounds for Double {
    fn is_double(&self) -> bool {
        true
    }

    fn largest(&self, number: f64, below: bool) -> f64 {
        if below { number.next_down() } else { number }
    }

    fn smallest(&self, number: f64) -> f64 {
        number
    }
}

impl Bounds for Single {
    fn is_double(&self) -> bool {
        false
    }

    fn largest(&self, number: f64, below: bool) -> f64 {
        let near = number as f32;
        let is_larger = if below { f64::from(near) >= number } else { f64::from(near) > number };
        let found = if is_larger { near.next_down() } else { near };
        // Devices may take what is nearly zero for zero, which is not below zero.
        if found.is_subnormal() && found < 0.0 { f64::from(-f32::MIN_POSITIVE) } else { found.into() }
    }

    fn smallest(&self, number: f64) -> f64 {
        let near = number as f32;
        if f64::from(near) < number { near.next_up().into() } else { near.into() }
    }
}

/// What a step of all trees reads of nodes.
#[derive(Default)]
struct Table {
    features: Vec<i64>,
    lows: Vec<f64>,
    highs: Vec<f64>,
    children: Vec<i64>,
    missing: Vec<bool>,
    is_double: bool,
}

impl Table {
    fn push(&mut self, low: f64, high: f64, children: [usize; 2], (feature, missing): (i64, bool)) -> usize {
        self.features.push(feature);
        self.lows.push(low);
        self.highs.push(high);
        self.children.extend(children.map(|child| child as i64));
        self.missing.push(missing);
        self.features.len() - 1
    }

    fn put(&mut self, place: usize, [low, high]: [f64; 2], children: [usize; 2], missing: bool) {
        (self.lows[place], self.highs[place], self.missing[place]) = (low, high, missing);
        self.children[2 * place..][..2].copy_from_slice(&children.map(|child| child as i64));
    }

    /// What a node compares. Where the comparison is said by its opposite, the children change places.
    fn set(&mut self, place: usize, split: &Split, bounds: &impl Bounds) {
        let (of, least) = (split.threshold, f64::NEG_INFINITY);
        let [yes, no] = split.children;
        self.features[place] = split.feature;
        let equal = [bounds.smallest(of), bounds.largest(of, false)];
        match &split.test {
            Test::AtMost => {
                self.put(place, [least, bounds.largest(of, false)], [yes, no], split.missing);
            }
            Test::Below => self.put(place, [least, bounds.largest(of, true)], [yes, no], split.missing),
            Test::AtLeast => self.put(place, [least, bounds.largest(of, true)], [no, yes], !split.missing),
            Test::Above => self.put(place, [least, bounds.largest(of, false)], [no, yes], !split.missing),
            Test::Equal => self.put(place, equal, [yes, no], split.missing),
            // What is no number is not equal to anything.
            Test::Other => self.put(place, equal, [no, yes], false),
            Test::Among(all) => self.search(place, split, all, bounds),
        }
    }

    /// Nodes that halve a set until one number of it is left. What is no number goes to the last halves, and so to one that says where.
    fn search(&mut self, place: usize, split: &Split, all: &[f64], bounds: &impl Bounds) {
        let mut all: Vec<f64> = all.iter().copied().filter(|number| !number.is_nan()).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        let mut left = vec![(place, &all[..])];
        while let Some((place, set)) = left.pop() {
            match set {
                [] => self.put(place, [f64::INFINITY, f64::NEG_INFINITY], split.children, split.missing),
                [one] => {
                    let equal = [bounds.smallest(*one), bounds.largest(*one, false)];
                    self.put(place, equal, split.children, split.missing);
                }
                _ => {
                    let (low, high) = set.split_at(set.len() / 2);
                    let mut add = || self.push(0.0, 0.0, [0; 2], (split.feature, false));
                    let halves = [add(), add()];
                    let most = bounds.largest(low[low.len() - 1], false);
                    self.put(place, [f64::NEG_INFINITY, most], halves, false);
                    left.extend([(halves[0], low), (halves[1], high)]);
                }
            }
        }
    }

    /// Bounds as a constant of the type that features are compared in.
    fn bounds(&self, b: &mut Builder, all: &[f64]) -> Result<TensorId> {
        let count = [all.len() as u64];
        match self.is_double {
            true => b.values(DType::I64, &count, &Values::Int(all.iter().map(|bound| key(*bound)).collect())),
            false => b.values(DType::F32, &count, &Values::Float(all.to_vec())),
        }
    }

    fn walk(&self, b: &mut Builder, x: TensorId, roots: &[usize], depth: usize) -> Result<TensorId> {
        let (trees, nodes) = (roots.len() as u64, self.features.len() as u64);
        let ints = |b: &mut Builder, dims: &[u64], list: &mut dyn Iterator<Item = i64>| {
            b.values(DType::I32, dims, &Values::Int(list.collect()))
        };
        let features = ints(b, &[nodes], &mut self.features.iter().copied())?;
        let children = ints(b, &[2 * nodes], &mut self.children.iter().copied())?;
        let highs = self.bounds(b, &self.highs)?;
        let has_lows = self.lows.iter().any(|low| *low > f64::NEG_INFINITY);
        let lows = if has_lows { Some(self.bounds(b, &self.lows)?) } else { None };
        let missing = match self.missing.contains(&true) {
            true => Some(ints(b, &[nodes], &mut self.missing.iter().map(|missing| i64::from(*missing)))?),
            false => None,
        };
        let at = ints(b, &[1, trees], &mut roots.iter().map(|root| *root as i64))?;
        let lines = b.sizes(x)[0];
        let mut at = b.expand_to(at, &[lines, trees.into()])?;
        for _ in 0..depth {
            let feature = b.gather(features, at, 0)?;
            let mut read = vec![at, b.gather_elements(x, feature, 1)?];
            for table in [Some(highs), lows, missing].into_iter().flatten() {
                read.push(b.gather(table, at, 0)?);
            }
            let is_double = self.is_double;
            let next = b.map(&read, DType::I32, |program, x| {
                let mut first = program.call(Function::Le, &x[1..3]);
                if has_lows {
                    let above = program.call(Function::Ge, &[x[1], x[3]]);
                    first = program.call(Function::And, &[first, above]);
                }
                if missing.is_some() {
                    let nan = match is_double {
                        true => program.call(Function::Eq, &[x[1], number(i64::MAX)]),
                        false => program.call(Function::IsNan, &x[1..2]),
                    };
                    let goes = program.cast(Type::Bool, x[x.len() - 1]);
                    let goes = program.call(Function::And, &[nan, goes]);
                    first = program.call(Function::Or, &[first, goes]);
                }
                let second = program.call(Function::Not, &[first]);
                let second = program.cast(Type::Of(DType::I32), second);
                let pair = program.call(Function::Add, &[x[0], x[0]]);
                program.call(Function::Add, &[pair, second])
            })?;
            at = b.gather(children, next, 0)?;
        }
        Ok(at)
    }
}

fn number(value: i64) -> Operand {
    Operand::Constant(Scalar::Int(value, DType::I64))
}

/// A number that is as large among integers as a float among floats; the least of what is no number, which nothing is at most.
fn key(value: f64) -> i64 {
    match value.to_bits() as i64 {
        _ if value.is_nan() => i64::MIN,
        bits if bits < 0 => i64::MIN.wrapping_sub(bits),
        bits => bits,
    }
}

/// The same for the bits of features; the largest of what is no number.
fn keys(b: &mut Builder, bits: TensorId) -> Result<TensorId> {
    let infinity = key(f64::INFINITY);
    b.map(&[bits], DType::I64, |program, x| {
        let negative = program.call(Function::Lt, &[x[0], number(0)]);
        let turned = program.call(Function::Sub, &[number(i64::MIN), x[0]]);
        let key = program.call(Function::Select, &[negative, turned, x[0]]);
        let large = program.call(Function::Gt, &[key, number(infinity)]);
        let small = program.call(Function::Lt, &[key, number(-infinity)]);
        let nan = program.call(Function::Or, &[large, small]);
        program.call(Function::Select, &[nan, number(i64::MAX), key])
    })
}
