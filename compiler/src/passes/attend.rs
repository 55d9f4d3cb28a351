//! Finding attention in graphs: a product, a softmax of it, and a second product become one operation, with factors, masks,
//! transposed keys and repeated heads around them.

use halite_ops::{
    DType, Operation,
    attention::{Attention, Mask},
    copy::StridedCopy,
    elementwise::Elementwise,
    expression::{self, Operand},
    matmul::MatMul,
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    chain::{Chain, part, replace},
    known_masks::{Known, KnownMasks},
    merge::{Reader, reseen},
    queries::{self, Queries},
    scores::{self, Form, form},
    strides::Strided,
};
use crate::{
    control::Watch,
    graph::{ElementType, Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Puts the operation in the place of the second product; what is not needed any more goes with the next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let masks = KnownMasks::default();
    let find = |chain: &Chain<'_>, node: &Node| pattern(chain, node, &masks);
    replace(graph, region, uses, watch, find, Pattern::write)
}

/// Attention as it lies in a graph.
struct Pattern {
    operation: Attention,
    q: Queries,
    /// What queries are multiplied by, with its dimensions, and those of the queries.
    factor: Option<(Added, Vec<Size>, Vec<Size>)>,
    k: Strided,
    v: Strided,
    /// What is added to the scores, its dimensions, and those that the operation wants.
    mask: Option<(Added, Vec<Size>, Vec<Size>)>,
}

/// What is added to scores.
enum Added {
    /// A tensor.
    Tensor(TensorId),
    /// What is computed of some.
    Computed(Elementwise, Vec<TensorId>),
}

/// Sizes of the scores.
#[derive(Clone, Copy)]
struct Sizes {
    batch: Size,
    heads: u64,
    queries: Size,
    keys: Size,
    dim: u64,
}

fn product(operation: &Operation) -> Option<&MatMul> {
    match operation {
        Operation::MatMul(product) if !product.rhs_shared || product.batch == 1 => {
            let same = product.lhs == product.rhs && product.lhs == product.out;
            same.then_some(product)
        }
        _ => None,
    }
}

fn pattern(chain: &Chain<'_>, node: &Node, masks: &KnownMasks) -> Option<Pattern> {
    let NodeOp::Operation(operation) = &node.op else { return None };
    let second = product(operation).filter(|product| !product.rhs_transposed)?;
    let dtype = second.out;
    let (mut weights, mut operation) = chain.only_maker(node.inputs[0])?;
    if matches!(operation, Operation::Elementwise(plain) if plain.conversion().is_some()) {
        // Models with 16 bits compute the softmax with 32, as attention does by itself.
        (weights, operation) = chain.only_maker(weights.inputs[0])?;
    }
    if matches!(operation, Operation::Elementwise(guard) if scores::is_guard(guard)) {
        // Attention gives 0 to queries that see nothing, too.
        (weights, operation) = chain.only_maker(weights.inputs[0])?;
    }
    let Operation::Softmax(softmax) = operation else { return None };
    if softmax.log || softmax.inner != 1 || softmax.mask_rows != 0 {
        return None;
    }
    let masked = weights.inputs[0];
    if softmax.dtype != dtype && (softmax.dtype != DType::F32 || dtype.size() != 2) {
        return None;
    }
    let Scores { form, factor, added, node: first_node, product: first, dims } = scores(chain, masked)?;
    if first.out != dtype {
        return None;
    }
    let sizes = sizes(&dims, first, second)?;
    let factor = factor.map(|factor| of_queries(factor, &dims, sizes, dtype));
    let factor = if let Some(factor) = factor { Some(factor?) } else { None };
    let (q_scale, q) = Queries::of(chain, first_node.inputs[0], dtype);
    let inner = if first.rhs_transposed { [sizes.dim.into(), 1.into()] } else { [1.into(), sizes.keys] };
    let k = Source::of(chain, first_node.inputs[1], first, sizes, inner);
    let v = Source::of(chain, node.inputs[1], second, sizes, [sizes.dim.into(), 1.into()]);
    let (k_scale, k) = k.follow(chain, dtype, true);
    let (_, v) = v.follow(chain, dtype, false);
    let (k, v, kv_heads) = shared(&k, &v, sizes)?;
    let (mask, (kind, mask_batches), causal) = mask((chain, masks), added, &dims, sizes, dtype)?;
    let operation = Attention {
        batch: sizes.batch,
        kv_heads: (kv_heads != sizes.heads).then_some(kv_heads),
        causal,
        mask: kind,
        mask_batches,
        scale: Some((form.scale * q_scale * k_scale).into()),
        softcap: form.softcap.map(Into::into),
        ..Attention::new(sizes.heads, sizes.queries, sizes.keys, sizes.dim, dtype)
    };
    operation_fits(&operation).then_some(Pattern { operation, q, factor, k, v, mask })
}

fn operation_fits(operation: &Attention) -> bool {
    crate::backend::check(&Operation::Attention(operation.clone())).is_ok()
}

/// What is added to scores: an operand of a program, whose inputs are those of the reader.
type Term = (Operand, Reader, expression::Expression);

/// What computes the input of the softmax.
struct Scores<'a> {
    /// What happens to the scores.
    form: Form,
    /// What they are multiplied by.
    factor: Option<Term>,
    /// What is added to them.
    added: Option<Term>,
    /// The product that gives them.
    node: &'a Node,
    product: &'a MatMul,
    /// Their dimensions, which tell images, windows and heads apart if they do so anywhere.
    dims: Vec<Size>,
}

fn scores<'a>(chain: &'a Chain<'_>, masked: TensorId) -> Option<Scores<'a>> {
    let (node, operation) = chain.only_maker(masked)?;
    let own = chain.graph.tensor(masked).sizes();
    let Operation::Elementwise(elementwise) = operation else {
        let form = Form { scale: 1.0, factor: None, softcap: None, added: None };
        let (product, dims) = (product(operation)?, own.to_vec());
        return Some(Scores { form, factor: None, added: None, node, product, dims });
    };
    let mut reader = Reader::new(elementwise, &node.inputs);
    let mut dims = chain.graph.tensor(node.outputs[0]).sizes().to_vec();
    let lines = |dims: &[Size]| dims.last_chunk::<2>().copied();
    if dims.len() < own.len() || lines(&dims) != lines(own) {
        // They are seen otherwise by the softmax.
        for (_, _, input) in &mut reader.inputs {
            *input = reseen(input, &dims, own)?;
        }
        dims = own.to_vec();
    }
    let whole = chain.graph.tensor(masked).count();
    (0..reader.inputs.len()).find_map(|input| {
        let (id, _, seen) = &reader.inputs[input];
        let (node, operation) = chain.only_maker(*id)?;
        let product = product(operation).filter(|_| seen.iter().product::<Size>() == whole)?;
        let (form, program) = form(&reader, input)?;
        let [factor, added] =
            [form.factor, form.added].map(|term| term.map(|term| (term, reader.clone(), program.clone())));
        Some(Scores { form, factor, added, node, product, dims: dims.clone() })
    })
}

/// Lines of other lengths than multiples of this are read element by element. Where lines are longer than there are keys, as in attention
/// between channels, whose lines are all pixels, two products take less time then.
const UNIT: u64 = 8;

/// The sizes of scores with these dimensions, when the products have them.
fn sizes(dims: &[Size], first: &MatMul, second: &MatMul) -> Option<Sizes> {
    let (lead, [queries, keys]) = dims.split_last_chunk::<2>()?;
    if lead.last().is_some_and(|heads| heads.is_data()) || first.k.is_data() {
        return None;
    }
    let (batch, heads) = match lead {
        [] => (Size::constant(1), Size::constant(1)),
        [heads] => (Size::constant(1), *heads),
        // Windows of images are images of their own.
        [images @ .., heads] => (images.iter().product(), *heads),
    };
    // Kernels are for so many heads of one length. Where that varies, as in attention between channels, whose lines are all pixels, two
    // products serve all sizes and attention one.
    if !halite_sizes::is_worth(|| heads.exact() > 0 && first.k.exact() > 0) {
        return None;
    }
    let (heads, dim) = (heads.exact(), first.k.exact());
    let sizes = Sizes { batch, heads, queries: *queries, keys: *keys, dim };
    let all = batch * heads;
    // Heads that share their keys may be rows of one product.
    let rows = |product: &MatMul| {
        all.is_multiple_of(product.batch.max(1))
            && product.batch.is_multiple_of(batch.max(1))
            && product.m * product.batch == all * *queries
    };
    // Of a number of keys that data decide nothing is promised for it.
    let between_channels = !dim.is_multiple_of(UNIT) && !keys.is_data() && *keys < dim;
    let fits = rows(first) && rows(second) && first.n == *keys && second.k == *keys && second.n == first.k;
    let fits = fits && !between_channels;
    (fits && dims.iter().all(|size| *size > 0)).then_some(sizes)
}

/// Where keys or values can be read, as `[batch, heads of the product, heads that share each, keys, dim]`: the operand of
/// the product first, then what it is made of.
struct Source(Vec<Strided>);

impl Source {
    /// The operand of a product, whose matrices have these strides.
    fn of(chain: &Chain<'_>, id: TensorId, product: &MatMul, sizes: Sizes, [row, column]: [Size; 2]) -> Self {
        let Sizes { batch, heads, keys, dim, .. } = sizes;
        let own = product.batch / batch.max(1);
        let matrix = keys * dim;
        let strides = vec![own * matrix, matrix, 0.into(), row, column];
        let sizes = vec![batch, own, Size::from(heads) / own.max(1), keys, dim.into()];
        Source(vec![Strided { tensor: chain.behind_views(id), offset: 0.into(), sizes, strides }])
    }

    /// All places back to where no strides lead, and a factor on the way, where one may be taken off.
    fn follow(mut self, chain: &Chain<'_>, dtype: DType, scaled: bool) -> (f64, Vec<Strided>) {
        let mut scale = 1.0;
        loop {
            let last = self.0.last().expect("there is the first").clone();
            if let Some((factor, from)) = chain.scaled(last.tensor).filter(|_| scaled) {
                scale *= factor;
                self.0 = vec![Strided { tensor: chain.behind_views(from), ..last }];
                continue;
            }
            let Some(Node { op: NodeOp::Operation(Operation::StridedCopy(copy)), inputs, .. }) =
                chain.producer(last.tensor)
            else {
                return (scale, self.0);
            };
            match behind(&last, copy, chain.behind_views(inputs[0])) {
                Some(next) if copy.dtype == dtype => self.0.push(next),
                _ => return (scale, self.0),
            }
        }
    }
}

/// What a copy reads for a place; heads may turn out to be shared.
fn behind(last: &Strided, copy: &StridedCopy, from: TensorId) -> Option<Strided> {
    if let Some(next) = last.through(copy, from) {
        return Some(next);
    }
    let [batch, heads, shares, keys, dim] = last.sizes[..] else { return None };
    if shares != 1 || !heads.is_constant() {
        return None;
    }
    (2..=heads.exact()).filter(|shared| heads.is_multiple_of(*shared)).find_map(|shared| {
        let mut split = last.clone();
        split.sizes = vec![batch, heads / shared, shared.into(), keys, dim];
        split.strides[1] = last.strides[1] * shared;
        split.strides[2] = last.strides[1];
        split.through(copy, from).filter(|next| next.strides[2] == 0)
    })
}

/// Whether neighbouring heads share keys or values that are read so.
fn is_shared(stop: &Strided) -> bool {
    stop.strides[2] == 0 && stop.sizes[2] > 1
}

/// Keys and values with as many heads, and how many these are. Of several places the one farthest back that needs no copy,
/// or else the last.
fn shared(k: &[Strided], v: &[Strided], sizes: Sizes) -> Option<(Strided, Strided, u64)> {
    let best = |stops: &[Strided]| -> Option<Strided> {
        stops.iter().rev().find(|stop| stop.is_dense()).or(stops.last()).cloned()
    };
    let heads = |stop: &Strided| if is_shared(stop) { stop.sizes[1].exact() } else { sizes.heads };
    let (k_best, v_best) = (best(k)?, best(v)?);
    if heads(&k_best) == heads(&v_best) {
        let count = heads(&k_best);
        return Some((k_best, v_best, count));
    }
    // Heads of both are read as they were repeated.
    let whole = |stops: &[Strided]| -> Option<Strided> {
        let own: Vec<Strided> = stops.iter().filter(|stop| !is_shared(stop)).cloned().collect();
        best(&own)
    };
    Some((whole(k)?, whole(v)?, sizes.heads))
}

/// The mask of an operation with what is written for it, after how many elements of the batch it repeats, and whether it is the causal one.
type Masked = (Option<(Added, Vec<Size>, Vec<Size>)>, (Mask, Option<Size>), bool);

/// What is added to scores of these dimensions, as the operation takes it.
fn mask(
    (chain, masks): (&Chain<'_>, &KnownMasks),
    added: Option<Term>,
    dims: &[Size],
    sizes: Sizes,
    dtype: DType,
) -> Option<Masked> {
    let Some(term) = added else { return Some((None, (Mask::None, None), false)) };
    let (made, value, inputs) = term_of(term)?;
    if let Some(known) = masks.known(chain, (&made, value), &inputs, [sizes.queries, sizes.keys]) {
        return Some((None, (Mask::None, None), known == Known::Causal));
    }
    let (added, own) = in_type((made, value, inputs), dtype)?;
    let dims = &[&vec![Size::constant(1); 3usize.saturating_sub(dims.len())], dims].concat();
    let own = dims_of(own, dims)?;
    // Images and windows before the heads: masks may be the same for the first ones, and differ for all behind.
    let outer = dims.len() - 3;
    let first = own[..outer].iter().position(|size| *size != 1).unwrap_or(outer);
    let mut wanted = own.clone();
    wanted[first..outer].copy_from_slice(&dims[first..outer]);
    wanted[outer + 1..].copy_from_slice(&[sizes.queries, sizes.keys]);
    let batches: Size = dims[first..outer].iter().product();
    let kind = match (own[outer] == 1, batches == 1) {
        (true, true) => Mask::Shared,
        (true, false) => Mask::Batch,
        (false, _) => Mask::Full,
    };
    if kind == Mask::Full {
        wanted[outer] = sizes.heads.into();
    }
    let batches = (kind != Mask::Shared && batches != sizes.batch).then_some(batches);
    Some((Some((added, own, wanted)), (kind, batches), false))
}

/// A program of its own, what it makes, and its inputs.
type Made = (expression::Expression, Operand, Vec<Input>);
/// An input of a reader: a tensor, its type, and the dimensions as which it is read.
type Input = (TensorId, DType, Vec<Size>);

/// What computes a term by itself.
fn term_of((operand, reader, program): Term) -> Option<Made> {
    let (made, value, inputs) = part(&program, operand);
    let inputs = inputs.into_iter().map(|input| reader.inputs[input].clone()).collect();
    let looks_up = made.lookups().next().is_some();
    (!looks_up).then_some((made, value, inputs))
}

/// A term in this type, and its dimensions.
fn in_type((made, value, inputs): Made, dtype: DType) -> Option<(Added, Vec<Size>)> {
    match (value, &inputs[..]) {
        (Operand::Input(0), [(id, own, dims)]) if *own == dtype => Some((Added::Tensor(*id), dims.clone())),
        // It may have another type.
        (Operand::Node(_) | Operand::Input(_), [_, ..]) => {
            let mut made = made;
            made.store(value, dtype);
            let shapes: Vec<_> = inputs.iter().map(|(_, dtype, dims)| (*dtype, dims.clone())).collect();
            let all: Vec<_> = shapes.iter().map(|(_, dims)| dims.clone()).collect();
            let ids = inputs.iter().map(|(id, ..)| *id).collect();
            Some((Added::Computed(Elementwise::new(shapes, made), ids), expression::broadcast(&all).ok()?))
        }
        _ => None,
    }
}

/// A factor of scores as one of queries, which have the same for all keys, with its dimensions and those of the queries.
fn of_queries(
    factor: Term,
    dims: &[Size],
    sizes: Sizes,
    dtype: DType,
) -> Option<(Added, Vec<Size>, Vec<Size>)> {
    let (factor, own) = in_type(term_of(factor)?, dtype)?;
    let own = dims_of(own, dims)?;
    let (last, lead) = dims.split_last()?;
    let of_queries = [lead, &[sizes.dim.into()]].concat();
    (own.last().is_some_and(|size| *size == 1) && *last != 1).then_some((factor, own, of_queries))
}

/// The dimensions of what is added to scores of these, as many as those, if it goes with them.
fn dims_of(own: Vec<Size>, dims: &[Size]) -> Option<Vec<Size>> {
    // Dimensions of one element before those of the scores say nothing.
    let more = own.iter().take(own.len().saturating_sub(dims.len())).take_while(|size| **size == 1).count();
    let own = &own[more..];
    let lead = dims.len().checked_sub(own.len())?;
    let goes = own.iter().zip(&dims[lead..]).all(|(own, size)| *own == 1 || own == size);
    goes.then(|| [&vec![Size::constant(1); lead], own].concat())
}

impl Pattern {
    /// The nodes in the place of the second product.
    fn write(self, graph: &mut Graph, node: &Node) -> Vec<Node> {
        let dtype = self.operation.dtype;
        let mut builder = NodeBuilder { graph, new: Vec::new(), node, dtype };
        let (k, v) = (builder.read(&self.k), builder.read(&self.v));
        let mut inputs = vec![builder.queries(self.q), k, v];
        if let Some((factor, own, dims)) = self.factor {
            let factor = builder.added(factor, &own);
            let mut program = expression::Expression::default();
            let scaled = program.call(expression::Function::Mul, &[Operand::Input(0), Operand::Input(1)]);
            program.store(scaled, dtype);
            let scaled = Elementwise::new([(dtype, dims.clone()), (dtype, own)], program);
            inputs[0] = builder.make(Operation::Elementwise(scaled), vec![inputs[0], factor], &dims);
        }
        if let Some((added, own, wanted)) = self.mask {
            let mut mask = builder.added(added, &own);
            if own != wanted {
                let copy = StridedCopy::expand(&own, &wanted, dtype);
                mask = builder.make(Operation::StridedCopy(copy), vec![mask], &wanted);
            }
            inputs.push(mask);
        }
        let mut new = builder.new;
        let op = NodeOp::Operation(Operation::Attention(self.operation));
        new.push(Node { op, inputs, outputs: node.outputs.clone(), location: node.location.clone() });
        new
    }
}

/// Makes nodes.
struct NodeBuilder<'a> {
    graph: &'a mut Graph,
    new: Vec<Node>,
    node: &'a Node,
    dtype: DType,
}

impl NodeBuilder<'_> {
    fn make(&mut self, operation: Operation, inputs: Vec<TensorId>, dims: &[Size]) -> TensorId {
        let name = self.node.location.as_str().to_owned();
        let element = ElementType::Of(self.dtype);
        let id = self.graph.add_tensor(Tensor::new(name, element, Shape::new(dims.iter().copied())));
        let location = self.node.location.clone();
        self.new.push(Node { op: NodeOp::Operation(operation), inputs, outputs: vec![id], location });
        id
    }

    /// What is added to scores, or multiplies queries.
    fn added(&mut self, added: Added, dims: &[Size]) -> TensorId {
        match added {
            Added::Tensor(id) => id,
            Added::Computed(elementwise, ids) => self.make(Operation::Elementwise(elementwise), ids, dims),
        }
    }

    /// Queries as the operation takes them.
    fn queries(&mut self, queries: Queries) -> TensorId {
        let mut id = match queries.from {
            queries::From::Tensor(id) => id,
            queries::From::Computed(elementwise, ids, dims) => {
                self.make(Operation::Elementwise(elementwise), ids, &dims)
            }
        };
        for copy in queries.copies {
            let dims = copy.shape.clone();
            id = self.make(Operation::StridedCopy(copy), vec![id], &dims);
        }
        id
    }

    /// Keys or values as the operation takes them: `[batch, heads, keys, dim]`.
    fn read(&mut self, stop: &Strided) -> TensorId {
        let mut own = stop.clone();
        if is_shared(stop) {
            own.sizes.remove(2);
            own.strides.remove(2);
        }
        let source = self.graph.tensor(own.tensor).count();
        if own.is_all(source) {
            return own.tensor;
        }
        let dims = own.sizes.clone();
        self.make(Operation::StridedCopy(own.copy(source, self.dtype)), vec![own.tensor], &dims)
    }
}
