//! Transposed convolutions over three and more dimensions as those of one dimension less.

use halite_ops::pad::Border;
use halite_sizes::Size;

use super::{
    super::{Builder, Range, Result},
    Sliding, Transposed, mirrored,
};
use crate::graph::{TensorId, elements};

/// Most phases that a transposed convolution is split into: each is a convolution of its own.
const MOST_PHASES: u64 = 64;

/// Results of a transposed convolution that the same taps of the first dimension give: one in `stride`.
struct Phase {
    /// The first tap.
    tap: u64,
    /// Number of taps, a stride apart.
    taps: u64,
    /// What the first tap of the first result meets; the next tap meets what lies before.
    start: u64,
    /// Number of results.
    count: u64,
}

impl Phase {
    /// All of `out` results, for each place in a stride.
    fn all(out: u64, kernel: u64, stride: u64, pad: u64) -> Vec<Phase> {
        let of = |place: u64| {
            let tap = (place + pad) % stride;
            let (taps, count) = ((kernel - tap).div_ceil(stride), out.saturating_sub(place).div_ceil(stride));
            Phase { tap, taps, start: (place + pad) / stride, count }
        };
        (0..stride).map(of).collect()
    }
}

impl Builder {
    /// Whether a transposed convolution is one of images of one place, of one group and without padding.
    pub(super) fn is_of_places(&self, x: TensorId, sliding: &Sliding, more: &[u64], groups: u64) -> bool {
        let plain = sliding.pads.iter().all(|pads| *pads == (0, 0)) && more.iter().all(|more| *more == 0);
        let single = self.sizes(x)[2..].iter().all(|size| size.is(1.into()));
        single && plain && groups == 1 && sliding.dilations.iter().all(|d| *d == 1)
    }

    /// A transposed convolution of images of one place, of one group and without padding: a product by the filters.
    pub(super) fn conv_transpose_of_places(
        &mut self,
        x: TensorId,
        filter: TensorId,
        bias: Option<TensorId>,
    ) -> Result<TensorId> {
        let (sizes, taps) = (self.sizes(x)[..2].to_vec(), self.dims(filter).to_vec());
        let rows = self.reshape_to(x, &sizes)?;
        let columns = self.reshape(filter, &[taps[0], elements(&taps[1..])])?;
        let made = self.matmul(rows, columns)?;
        let dims: Vec<Size> = [sizes[0]].into_iter().chain(taps[1..].iter().map(|n| (*n).into())).collect();
        let made = self.reshape_to(made, &dims)?;
        match bias {
            Some(bias) => self.add_to_channels(made, bias),
            None => Ok(made),
        }
    }

    /// A transposed convolution over three or more dimensions.
    pub(super) fn conv_transpose_of_volumes(&mut self, x: TensorId, of: &Transposed<'_>) -> Result<TensorId> {
        // Where a stride is longer than the kernel, there are places without any tap.
        let most = self.dims(of.filter)[2].min(MOST_PHASES);
        if of.sliding.dilations[0] == 1 && of.sliding.strides[0] <= most {
            self.conv_transpose_by_slices(x, of)
        } else {
            self.conv_of_spread(x, of)
        }
    }

    /// A transposed convolution over three or more dimensions. Results that are a stride apart in the first of them use the same taps:
    /// each is an image, whose channels are those of all slices that these taps meet. No dilation in the first dimension, and no stride
    /// that is longer than the kernel.
    fn conv_transpose_by_slices(&mut self, x: TensorId, of: &Transposed<'_>) -> Result<TensorId> {
        let Transposed { filter, bias, sliding, more, groups } = *of;
        let (dims, kernel) = (self.dims(x).to_vec(), self.dims(filter)[2]);
        let (stride, pads) = (sliding.strides[0], sliding.pads[0]);
        let all = dims[2].checked_sub(1).and_then(|steps| steps.checked_mul(stride));
        let all = all.and_then(|all| all.checked_add(kernel + more[0]));
        let Some(out) = all.and_then(|all| all.checked_sub(pads.0.checked_add(pads.1)?)).filter(|n| *n > 0)
        else {
            return Err(self.invalid("the padding cuts off more than there is".to_owned()));
        };
        let phases = Phase::all(out, kernel, stride, pads.0);
        let before = phases.iter().map(|p| (p.taps - 1).saturating_sub(p.start)).max().unwrap_or(0);
        let end = phases.iter().map(|p| p.start + p.count).max().unwrap_or(0);
        let mut borders = vec![(0, 0); dims.len()];
        borders[2] = (before as i64, end.saturating_sub(dims[2]) as i64);
        let padded = self.pad(x, &borders, Border::Constant, 0.0)?;
        let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..dims.len()).collect();
        let slices = self.transpose(padded, &order)?;

        let most = phases.iter().map(|phase| phase.count).max().unwrap_or(0);
        let mut parts = Vec::with_capacity(phases.len());
        for phase in phases.iter().filter(|phase| phase.count > 0) {
            let data = self.met_by(slices, phase, before)?;
            let filter = self.taps_of(filter, phase, stride)?;
            let made = self.conv_transpose(data, filter, bias, &sliding.inner(), &more[1..], groups)?;
            let out = self.dims(made).to_vec();
            let apart = self.reshape(made, &[&[dims[0], phase.count, 1], &out[1..]].concat())?;
            let mut borders = vec![(0, 0); out.len() + 2];
            borders[1].1 = (most - phase.count) as i64;
            parts.push(self.pad(apart, &borders, Border::Constant, 0.0)?);
        }
        let joined = self.concat(&parts, 2)?;
        let shape = self.dims(joined).to_vec();
        let joined = self.reshape(joined, &[&[shape[0], shape[1] * shape[2]], &shape[3..]].concat())?;
        let mut ranges: Vec<Range> = self.dims(joined).iter().map(|size| Range::all(*size)).collect();
        ranges[1].count = out;
        let cut = self.slice(joined, &ranges)?;
        self.transpose(cut, &order)
    }

    /// Of images x slices x channels x …, where so many slices of nothing come first: for each result of a phase an image of the
    /// slices that its taps meet.
    fn met_by(&mut self, slices: TensorId, phase: &Phase, before: u64) -> Result<TensorId> {
        let met = |tap| Range { start: before + phase.start - tap, step: 1, count: phase.count };
        self.slices_as_channels(slices, phase.count, (0..phase.taps).map(met))
    }

    /// Channels x filters x taps x … as (channels * taps of a phase) x filters x ….
    fn taps_of(&mut self, filter: TensorId, phase: &Phase, stride: u64) -> Result<TensorId> {
        let dims = self.dims(filter).to_vec();
        let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
        ranges[2] = Range { start: phase.tap, step: stride as i64, count: phase.taps };
        let taps = self.slice(filter, &ranges)?;
        let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..dims.len()).collect();
        let taps = self.transpose(taps, &order)?;
        let shape = self.dims(taps).to_vec();
        self.reshape(taps, &[&[elements(&shape[..2])], &shape[2..]].concat())
    }

    /// A transposed convolution as a convolution of images with zeros between the elements and mirrored filters.
    fn conv_of_spread(&mut self, x: TensorId, of: &Transposed<'_>) -> Result<TensorId> {
        let Transposed { filter, bias, sliding, more, groups } = *of;
        let mut spread = x;
        let taps = self.dims(filter).to_vec();
        let (mut borders, rank) = (vec![(0, 0); 2], taps.len() - 2);
        for d in 0..rank {
            spread = self.zeros_between(spread, d + 2, sliding.strides[d])?;
            let reach = (sliding.dilations[d] * (taps[d + 2] - 1)) as i64;
            let (before, behind) = sliding.pads[d];
            borders.push((reach - before as i64, reach - behind as i64 + more[d] as i64));
        }
        let spread = self.pad(spread, &borders, Border::Constant, 0.0)?;
        if groups == 0 || !taps[0].is_multiple_of(groups) {
            return Err(self.invalid(format!("{} channels do not make {groups} groups", taps[0])));
        }
        let filter = self.slice(filter, &mirrored(&taps))?;
        // Group, channel, filter to group, filter, channel.
        let split = [&[groups, taps[0] / groups, taps[1]], &taps[2..]].concat();
        let filter = self.reshape(filter, &split)?;
        let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..split.len()).collect();
        let filter = self.transpose(filter, &order)?;
        let merged = [&[groups * taps[1], taps[0] / groups], &taps[2..]].concat();
        let filter = self.reshape(filter, &merged)?;
        let plain = Sliding { dilations: sliding.dilations.clone(), ..Sliding::plain(rank) };
        self.conv(spread, filter, bias, &plain, groups)
    }

    /// `stride - 1` zeros between the places of a dimension.
    fn zeros_between(&mut self, x: TensorId, axis: usize, stride: u64) -> Result<TensorId> {
        let dims = self.dims(x).to_vec();
        if stride == 1 || dims[axis] == 0 {
            return Ok(x);
        }
        let (outer, inner) = (elements(&dims[..axis]), elements(&dims[axis + 1..]));
        let apart = self.reshape(x, &[outer, dims[axis], 1, inner])?;
        let after = stride as i64 - 1;
        let wide = self.pad(apart, &[(0, 0), (0, 0), (0, after), (0, 0)], Border::Constant, 0.0)?;
        let joined = self.reshape(wide, &[outer, dims[axis] * stride, inner])?;
        let cut = self.pad(joined, &[(0, 0), (0, -after), (0, 0)], Border::Constant, 0.0)?;
        let mut result = dims.clone();
        result[axis] = (dims[axis] - 1) * stride + 1;
        self.reshape(cut, &result)
    }
}
