//! Operators whose results have as many elements as data say: they are computed while the graph is built, of data that are
//! known then.

use std::cmp::Ordering;

use halite_ops::{DType, Values};

use super::{NodeView, Result};
use crate::{
    build::Builder,
    graph::{TensorId, elements},
};

/// Coordinates of the elements that are not 0.
pub(super) fn non_zero(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let known = b.need_floats(data, "which elements are not 0")?;
    let dims = b.dims(data).to_vec();
    let places: Vec<u64> = (0..known.len() as u64).filter(|place| known[*place as usize] != 0.0).collect();
    b.countable((dims.len() as u64).saturating_mul(places.len() as u64))?;
    let mut coordinates = Vec::with_capacity(dims.len() * places.len());
    for axis in 0..dims.len() {
        let inner = elements(&dims[axis + 1..]).max(1);
        coordinates.extend(places.iter().map(|place| (place / inner % dims[axis]) as i64));
    }
    let shape = [dims.len() as u64, places.len() as u64];
    Ok(vec![b.values(DType::I64, &shape, &Values::Int(coordinates))?])
}

/// Order of elements; NaN is the largest.
fn order(values: &Values, a: usize, b: usize) -> Ordering {
    match values {
        Values::Int(v) => v[a].cmp(&v[b]),
        Values::Float(v) => v[a].partial_cmp(&v[b]).unwrap_or_else(|| v[a].is_nan().cmp(&v[b].is_nan())),
    }
}

/// Elements, or places along an axis, without repetition: the values, where each is first, for each place which of them it
/// has, and how often each is there.
pub(super) fn unique(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let mut data = node.input(0)?;
    b.need_floats(data, "which elements there are")?;
    let axis = node.int_if("axis")?;
    let axis = match axis {
        Some(axis) => node.axis(axis, b.rank(data))?,
        None => {
            let count = elements(b.dims(data));
            data = b.reshape(data, &[count])?;
            0
        }
    };
    let dims = b.dims(data).to_vec();
    let (outer, inner) = (elements(&dims[..axis]) as usize, elements(&dims[axis + 1..]) as usize);
    let size = dims[axis] as usize;
    let values = b.known(data).ok_or_else(|| node.invalid("the elements are not known"))?;
    let at = |place: usize| (0..outer * inner).map(move |i| (i / inner * size + place) * inner + i % inner);
    let compare = |x: usize, y: usize| {
        at(x).zip(at(y)).map(|(x, y)| order(&values, x, y)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    };
    let mut sorted: Vec<usize> = (0..size).collect();
    sorted.sort_by(|x, y| compare(*x, *y).then(x.cmp(y)));
    // Groups of equal places; the first of each group comes first.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for place in sorted {
        match groups.last_mut() {
            Some(group) if compare(group[0], place).is_eq() => group.push(place),
            _ => groups.push(vec![place]),
        }
    }
    if !node.flag("sorted", true)? {
        groups.sort_by_key(|group| group[0]);
    }
    let mut inverse = vec![0i64; size];
    for (number, group) in groups.iter().enumerate() {
        group.iter().for_each(|place| inverse[*place] = number as i64);
    }
    let firsts: Vec<i64> = groups.iter().map(|group| group[0] as i64).collect();
    let counts: Vec<i64> = groups.iter().map(|group| group.len() as i64).collect();
    let places = b.ints_constant(&firsts)?;
    let chosen = b.gather(data, places, axis)?;
    Ok(vec![chosen, places, b.ints_constant(&inverse)?, b.ints_constant(&counts)?])
}

/// A box by its corners, the smaller coordinates first.
#[derive(Clone, Copy)]
struct Corners([f64; 4]);

impl Corners {
    fn new(numbers: &[f64], centered: bool) -> Self {
        let [a, b, c, d] = [numbers[0], numbers[1], numbers[2], numbers[3]];
        if centered {
            return Corners([a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0]);
        }
        Corners([a.min(c), b.min(d), a.max(c), b.max(d)])
    }

    fn area(self) -> f64 {
        (self.0[2] - self.0[0]) * (self.0[3] - self.0[1])
    }

    /// What both cover, as a part of what either covers.
    fn overlap(self, other: Corners) -> f64 {
        let side = |axis: usize| {
            (self.0[axis + 2].min(other.0[axis + 2]) - self.0[axis].max(other.0[axis])).max(0.0)
        };
        let both = side(0) * side(1);
        let either = self.area() + other.area() - both;
        if either > 0.0 { both / either } else { 0.0 }
    }
}

/// The best boxes of each class that do not overlap better ones, as (batch, class, box).
pub(super) fn non_max_suppression(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    const WHAT: &str = "which boxes are left";
    let (boxes, scores) = (node.input(0)?, node.input(1)?);
    let (&[batches, count, 4], &[score_batches, classes, scored]) = (b.dims(boxes), b.dims(scores)) else {
        return Err(node.invalid(format!("no boxes and scores: {}", b.describe(&[boxes, scores]))));
    };
    if batches != score_batches || count != scored {
        return Err(node.invalid("there is not one score for each box"));
    }
    let boxes = b.need_floats(boxes, WHAT)?;
    let scores = b.need_floats(scores, WHAT)?;
    let first = |b: &Builder, index: usize| -> Result<Option<f64>> {
        let known = node.optional(index).map(|id| b.need_floats(id, WHAT)).transpose()?;
        Ok(known.and_then(|all| all.first().copied()))
    };
    let most = first(b, 2)?.unwrap_or(0.0).max(0.0) as usize;
    let (threshold, least) = (first(b, 3)?.unwrap_or(0.0), first(b, 4)?);
    let centered = node.flag("center_point_box", false)?;
    let (count, classes) = (count as usize, classes as usize);
    let corners: Vec<Corners> =
        boxes.chunks_exact(4).map(|numbers| Corners::new(numbers, centered)).collect();
    let mut chosen = Vec::new();
    for batch in 0..batches as usize {
        for class in 0..classes {
            let score = |place: usize| scores[(batch * classes + class) * count + place];
            let mut places: Vec<usize> =
                (0..count).filter(|place| least.is_none_or(|least| score(*place) > least)).collect();
            places.sort_by(|x, y| score(*y).total_cmp(&score(*x)));
            let mut kept: Vec<usize> = Vec::new();
            for place in places {
                if kept.len() >= most {
                    break;
                }
                let own = corners[batch * count + place];
                if kept.iter().all(|other| own.overlap(corners[batch * count + other]) <= threshold) {
                    kept.push(place);
                    chosen.extend([batch as i64, class as i64, place as i64]);
                }
            }
        }
    }
    let rows = chosen.len() as u64 / 3;
    Ok(vec![b.values(DType::I64, &[rows, 3], &Values::Int(chosen))?])
}
