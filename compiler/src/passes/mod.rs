//! Rewriting of graphs into graphs that compute the same with less work.
//!
//! [`PASSES`] is the list in its order. Passes over regions look at one region at a time, and at the uses of tensors in the
//! whole graph (`Uses`). None of them knows a target. In debug builds the rules of graphs are checked after each.
//! `docs/how-to/add-a-pass.md` says how one is added.

mod activations;
mod affine;
mod ahead;
mod attend;
#[cfg(test)]
mod attend_tests;
mod beside;
mod bindable;
mod casts;
mod chain;
mod channel_values;
mod channels_first;
mod channels_last;
mod clean;
mod coded;
mod constants;
mod epilogue;
mod factors;
mod fuse;
mod gates;
mod growing;
mod image_norms;
mod images;
mod inline;
mod joined;
mod known_masks;
mod linear;
mod lookups;
mod merge;
mod moves;
mod narrow;
mod norm_lines;
mod normed;
mod normed_rows;
mod norms;
mod pads;
mod parallel;
mod picked;
mod places;
mod precision;
pub(crate) mod print;
mod queries;
mod reads;
mod rows;
mod scores;
mod several;
mod stacked;
mod strides;
#[cfg(test)]
mod tests;
mod tokens;
mod turned;
mod turned_products;
mod uses;
mod windows;

pub use precision::{HalfPrecision, Precision};
pub use print::PrintGraph;
pub(crate) use reads::strided_read;
pub(crate) use uses::Uses;

use crate::{
    CompileError, Control, Progress, Stage,
    control::Watch,
    graph::{Graph, NodeOp, Region},
};

/// What passes give: nothing, or the control's error.
type Result<T = ()> = std::result::Result<T, CompileError>;

/// A rewriting of graphs.
#[derive(Debug)]
pub struct Pass {
    /// Its name, which no other has.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Passes that come before it, because it looks for what they leave.
    pub needs: &'static [&'static str],
    run: Run,
}

/// What a pass works on.
#[derive(Debug)]
enum Run {
    /// The whole graph, in the precision that is asked for.
    Graph(fn(&mut Graph, Precision, &Control) -> Result<HalfPrecision>),
    /// One region after the other, inner ones first.
    Regions(fn(&mut Graph, &mut Region, &mut Uses, Watch<'_>) -> Result),
}

/// All passes, in their order.
pub static PASSES: &[Pass] = &[
    Pass {
        name: "half-precision",
        summary: "computes with 16-bit floats, or with 32 bits instead of 16, where kernels take them, if that is asked for",
        needs: &[],
        run: Run::Graph(precision::run),
    },
    Pass {
        name: "clean",
        summary: "leaves out unused nodes, and all but one of equal ones",
        needs: &[],
        run: Run::Regions(clean::run),
    },
    Pass {
        name: "plain-casts",
        summary: "leaves out conversions that change nothing",
        needs: &["clean"],
        run: Run::Regions(casts::run),
    },
    Pass {
        name: "fold-pads",
        summary: "lets convolutions put zeros around their inputs by themselves",
        needs: &["clean"],
        run: Run::Regions(pads::run),
    },
    Pass {
        name: "channels-first",
        summary: "gives images their channels first where several operations have them last",
        needs: &["fold-pads"],
        run: Run::Regions(channels_first::run),
    },
    Pass {
        name: "fold-batch-norm",
        summary: "puts batch normalization by constants into the weights of the convolution or product before it",
        needs: &["channels-first"],
        run: Run::Regions(linear::fold_batch_norm),
    },
    Pass {
        name: "channel-values",
        summary: "puts constants that multiply or are added to channels into the convolution before them",
        needs: &["channels-first", "fold-batch-norm"],
        run: Run::Regions(channel_values::run),
    },
    Pass {
        name: "parallel-convolutions",
        summary: "makes one convolution of several of one image whose results are added",
        needs: &["fold-batch-norm"],
        run: Run::Regions(parallel::run),
    },
    Pass {
        name: "batch-norm-ahead",
        summary: "puts batch normalization by constants into the weights of the convolutions of one tap behind it",
        needs: &["fold-batch-norm"],
        run: Run::Regions(ahead::run),
    },
    Pass {
        name: "plain-batch-norm",
        summary: "makes arithmetic of batch normalization by constants that an elementwise operation reads",
        needs: &["fold-batch-norm", "parallel-convolutions", "batch-norm-ahead"],
        run: Run::Regions(affine::run),
    },
    Pass {
        name: "inline-scalars",
        summary: "writes constants of one element into the expressions that read them",
        needs: &["fold-batch-norm"],
        run: Run::Regions(inline::run),
    },
    Pass {
        name: "single-terms",
        summary: "makes elementwise operations of products whose sums have one term, and leaves out sums along one place",
        needs: &["plain-casts"],
        run: Run::Regions(narrow::run),
    },
    Pass {
        name: "fixed-indices",
        summary: "makes slices of what is picked by fixed indices at one distance",
        needs: &["channels-first"],
        run: Run::Regions(moves::fixed_indices),
    },
    Pass {
        name: "joined-parts",
        summary: "makes one copy of what joins parts of one tensor",
        needs: &["fixed-indices"],
        run: Run::Regions(joined::run),
    },
    Pass {
        name: "look-ups",
        summary: "makes elementwise operations of picking single elements of small tables beside such operations",
        needs: &["channels-first", "fixed-indices"],
        run: Run::Regions(lookups::run),
    },
    Pass {
        name: "fuse-elementwise",
        summary: "joins elementwise operations into one",
        needs: &["clean", "plain-batch-norm", "inline-scalars", "single-terms", "joined-parts", "look-ups"],
        run: Run::Regions(fuse::run),
    },
    Pass {
        name: "find-attention",
        summary: "makes attention of a product, a softmax and a product",
        needs: &["fuse-elementwise"],
        run: Run::Regions(attend::run),
    },
    Pass {
        name: "find-norms",
        summary: "makes normalizations of the arithmetic that exporters write for them",
        needs: &["fuse-elementwise"],
        run: Run::Regions(norms::run),
    },
    Pass {
        name: "norms-of-images",
        summary: "puts factors and added values of channels, and activations, into normalizations of groups of channels",
        needs: &["find-norms"],
        run: Run::Regions(image_norms::run),
    },
    Pass {
        name: "epilogues",
        summary: "puts added values, factors, added tensors and activations into the product or convolution before them",
        needs: &["fuse-elementwise", "find-attention", "find-norms"],
        run: Run::Regions(epilogue::run),
    },
    Pass {
        name: "clean-again",
        summary: "leaves out what the passes before replaced",
        needs: &["find-attention", "norms-of-images", "epilogues"],
        run: Run::Regions(clean::run),
    },
    Pass {
        name: "turned-products",
        summary: "moves orders of rows over products to the side on which attention reads or writes them where they lie",
        needs: &["find-attention", "epilogues", "clean-again"],
        run: Run::Regions(turned_products::run),
    },
    Pass {
        name: "channels-last",
        summary: "gives images of 16-bit floats their channels last where that pays and all devices have matrix units",
        needs: &["epilogues", "clean-again"],
        run: Run::Regions(channels_last::run),
    },
    Pass {
        name: "channels-of-tokens",
        summary: "lets convolutions of single channels read and write tokens where they lie",
        needs: &["epilogues", "clean-again", "channels-last"],
        run: Run::Regions(tokens::run),
    },
    Pass {
        name: "clean-tokens",
        summary: "leaves out transposes that such convolutions do without",
        needs: &["channels-of-tokens"],
        run: Run::Regions(clean::run),
    },
    Pass {
        name: "epilogues-of-tokens",
        summary: "puts activations behind such convolutions into them",
        needs: &["clean-tokens"],
        run: Run::Regions(epilogue::run),
    },
    Pass {
        name: "products-of-places",
        summary: "makes products of convolutions whose filters cover their images, such as those behind a mean over the image",
        needs: &["epilogues", "clean-again"],
        run: Run::Regions(places::run),
    },
    Pass {
        name: "bindable-weights",
        summary: "takes products and look-ups apart whose weights are more than devices can bind",
        needs: &["epilogues", "clean-again"],
        run: Run::Regions(bindable::run),
    },
    Pass {
        name: "join-products",
        summary: "makes one product of several of one tensor by weights, such as queries, keys and values",
        needs: &["epilogues", "clean-again", "products-of-places", "bindable-weights"],
        run: Run::Regions(beside::run),
    },
    Pass {
        name: "gates",
        summary: "puts gates into the product of few rows by weights in blocks that computes both sides",
        needs: &["join-products"],
        run: Run::Regions(gates::run),
    },
    Pass {
        name: "normalized-products",
        summary: "puts normalizations of few rows into the products by weights in blocks that read them",
        needs: &["find-norms", "join-products", "gates"],
        run: Run::Regions(normed::run),
    },
    Pass {
        name: "products-of-normalized-rows",
        summary: "puts normalizations of many rows into the products that read them where all devices have matrix units",
        needs: &["find-norms", "join-products"],
        run: Run::Regions(normed_rows::run),
    },
    Pass {
        name: "coded-lines",
        summary: "normalizes and gates lines where they are quantized",
        needs: &["find-norms", "join-products"],
        run: Run::Regions(coded::run),
    },
    Pass {
        name: "join-copies",
        summary: "makes one copy of several behind each other, and a view of a copy of everything",
        needs: &["fixed-indices", "clean-again", "join-products"],
        run: Run::Regions(moves::join),
    },
    Pass {
        name: "clean-copies",
        summary: "leaves out copies that nothing reads any more",
        needs: &["join-copies"],
        run: Run::Regions(clean::run),
    },
    Pass {
        name: "picked-rows",
        summary: "makes one look-up at constant places of moves that change the order of rows as no copy can",
        needs: &["clean-copies"],
        run: Run::Regions(picked::run),
    },
    Pass {
        name: "clean-picked",
        summary: "leaves out moves that look-ups replaced",
        needs: &["picked-rows"],
        run: Run::Regions(clean::run),
    },
    Pass {
        name: "growing-states",
        summary: "gives states that grow by concatenation rows to spare, so that a call writes its own rows and copies none",
        needs: &["find-attention", "clean-picked"],
        run: Run::Graph(growing::run),
    },
    Pass {
        name: "attention-rows",
        summary: "lets attention read and write rows where they lie",
        needs: &["find-attention", "growing-states"],
        run: Run::Regions(rows::run),
    },
    Pass {
        name: "clean-rows",
        summary: "leaves out copies that attention does without",
        needs: &["attention-rows"],
        run: Run::Regions(clean::run),
    },
    Pass {
        name: "strided-reads",
        summary: "lets elementwise operations read parts of tensors, and other orders, where they lie",
        needs: &["epilogues", "clean-rows"],
        run: Run::Regions(reads::run),
    },
    Pass {
        name: "clean-at-last",
        summary: "leaves out what nothing reads any more",
        needs: &["strided-reads"],
        run: Run::Regions(clean::run),
    },
    Pass {
        name: "shared-values",
        summary: "computes values that many elements share where those are computed, if that is a few sums and products",
        needs: &["find-norms", "epilogues", "coded-lines", "clean-at-last"],
        run: Run::Regions(fuse::shared_values),
    },
    Pass {
        name: "turned-rows",
        summary: "turns and rounds new rows of keys where they are written, and rounds results of few queries where they are computed",
        needs: &["clean-at-last"],
        run: Run::Regions(turned::run),
    },
    Pass {
        name: "norm-lines",
        summary: "lets layer normalizations read and write lines where they lie",
        needs: &["find-norms", "clean-at-last", "turned-rows"],
        run: Run::Regions(norm_lines::run),
    },
    Pass {
        name: "clean-lines",
        summary: "leaves out copies that normalizations do without",
        needs: &["norm-lines"],
        run: Run::Regions(clean::run),
    },
    Pass {
        name: "several-results",
        summary: "joins elementwise operations of which others read the results too",
        needs: &["clean-at-last"],
        run: Run::Regions(several::run),
    },
];

/// Is shown the graph before the first pass (`None`), and after each.
pub type Observer<'a> = dyn FnMut(Option<&Pass>, &Graph) + 'a;

/// Runs all passes.
///
/// # Errors
/// A pass broke a rule of graphs, which is a fault of the compiler.
pub fn optimize(graph: &mut Graph) -> Result {
    optimize_with(graph, Precision::Model, &Control::default(), &mut |_, _| ()).map(drop)
}

/// As [`optimize`], in a precision, watched and stopped by `control`, and shown to `observer`. Gives what became of the
/// operations with [`Precision::F16`].
///
/// # Errors
/// As [`optimize`], and when `control` ends the work; the graph is not whole then, and good for nothing.
pub fn optimize_with(
    graph: &mut Graph,
    precision: Precision,
    control: &Control,
    observer: &mut Observer<'_>,
) -> Result<HalfPrecision> {
    let watch = control.at(Stage::Optimizing);
    let mut half = HalfPrecision::default();
    observer(None, graph);
    for (done, pass) in PASSES.iter().enumerate() {
        control.report(Progress { stage: Stage::Optimizing, done, total: PASSES.len() });
        match pass.run {
            Run::Graph(run) => half.add(run(graph, precision, control)?),
            Run::Regions(run) => {
                let mut body = std::mem::take(&mut graph.body);
                let mut uses = Uses::of(&body);
                each(graph, &mut body, &mut uses, run, watch)?;
                graph.body = body;
            }
        }
        // Equal nodes are one now, of which results and ports have to have the same.
        for (port, id) in graph.outputs.iter_mut().zip(&graph.body.results) {
            port.tensor = *id;
        }
        crate::error::unpinned(&crate::SourceLocation::new(format!("the pass {}", pass.name)))?;
        if cfg!(debug_assertions) {
            graph.check_while(watch).map_err(|error| broken(pass, error))?;
        }
        observer(Some(pass), graph);
    }
    control.report(Progress { stage: Stage::Optimizing, done: PASSES.len(), total: PASSES.len() });
    Ok(half)
}

/// The error of a check, with the pass after which it was found.
fn broken(pass: &Pass, error: CompileError) -> CompileError {
    match error {
        CompileError::Invalid { location, reason } => {
            CompileError::Invalid { location, reason: format!("{reason} (after the pass {})", pass.name) }
        }
        other => other,
    }
}

/// A pass over one region.
type RegionPass = fn(&mut Graph, &mut Region, &mut Uses, Watch<'_>) -> Result;

/// Runs a pass over every region, inner ones first.
fn each(
    graph: &mut Graph,
    region: &mut Region,
    uses: &mut Uses,
    pass: RegionPass,
    watch: Watch<'_>,
) -> Result {
    for node in &mut region.nodes {
        match &mut node.op {
            NodeOp::If(branches) => {
                for branch in branches.iter_mut() {
                    each(graph, branch, uses, pass, watch)?;
                }
            }
            NodeOp::Loop(body) => each(graph, body, uses, pass, watch)?,
            NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View | NodeOp::Host(_) => {}
        }
    }
    watch.check()?;
    pass(graph, region, uses, watch)
}
