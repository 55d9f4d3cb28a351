//! Owns lines of tensors, which reductions, normalizations and sorts work along, and how workgroups share them. Does not
//! own: any operation. The other half is `include/lines.glsl`.

use crate::{DType, Module, Params, Plan, Slot, Step, Unfit, library, plan::narrow};

/// A tensor of outer x length x inner elements as `outer * inner` lines of `length` elements, `inner` apart. Several
/// neighbouring axes of a tensor are one `length`; axes before them are `outer`, those behind `inner`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// Product of the axes before.
    pub(crate) outer: u64,
    /// Elements of a line.
    pub(crate) length: u64,
    /// Product of the axes behind.
    pub(crate) inner: u64,
}

/// How workgroups share lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Lines of a workgroup.
    pub(crate) across: u32,
    /// Invocations for each of them.
    pub(crate) along: u32,
    /// Elements of a piece of a line.
    pub(crate) chunk: u32,
    /// Pieces of a line, each for another workgroup.
    pub(crate) chunks: u32,
    lines: u32,
    length: u32,
    inner: u32,
}

/// Workgroups along x; more go along y, because 65535 is all that every device has.
const ACROSS_X: u32 = 32768;

impl Lines {
    /// Number of lines.
    pub(crate) fn count(&self) -> u64 {
        self.outer.saturating_mul(self.inner)
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> u64 {
        self.count().saturating_mul(self.length)
    }

    /// Indices of the elements of every line.
    pub(crate) fn places(&self) -> impl Iterator<Item = Vec<usize>> + use<> {
        let [outer, length, inner] = [self.outer, self.length, self.inner].map(|n| n as usize);
        let line = move |o: usize, i: usize| (0..length).map(|j| (o * length + j) * inner + i).collect();
        (0..outer).flat_map(move |o| (0..inner).map(move |i| line(o, i)))
    }

    /// Each line by one workgroup of `along` invocations, whatever it looks like.
    ///
    /// # Errors
    /// There are too many elements.
    pub(crate) fn whole(&self, along: u32) -> Result<Share, Unfit> {
        narrow("a number of elements", self.elements())?;
        let [length, inner] = [narrow("a length", self.length)?, narrow("inner", self.inner)?];
        let lines = narrow("a number of lines", self.count())?;
        Ok(Share { across: 1, along, chunk: length, chunks: 1, lines, length, inner })
    }

    /// How a variant shares them. Its parameters are `across` and `along`; `packed` (1) when it takes four neighbours at
    /// a time; and what it is good for: `min_inner`, `min_length`, `max_length`.
    ///
    /// # Errors
    /// The lines are none that it can take or is good for.
    pub(crate) fn share(&self, params: &Params) -> Result<Share, Unfit> {
        let (across, along) = (params.get("across")?, params.get("along")?);
        let optional = |name, default| params.get(name).unwrap_or(default);
        if !along.is_power_of_two() || across == 0 {
            return Err(Unfit(format!("has {along} invocations along lines, which is no power of two")));
        }
        if optional("packed", 0) == 1 && (self.inner != 1 || !self.length.is_multiple_of(4)) {
            return Err(Unfit("takes lines of a multiple of four neighbouring elements".into()));
        }
        let limits = [
            (self.inner, u64::from(optional("min_inner", 0)), u64::MAX, "inner"),
            (
                self.length,
                u64::from(optional("min_length", 0)),
                u64::from(optional("max_length", u32::MAX)),
                "length",
            ),
        ];
        for (value, least, most, what) in limits {
            if value < least || value > most {
                return Err(Unfit(format!("is for {what} from {least} to {most}, not {value}")));
            }
        }
        Ok(Share { across, ..self.whole(along)? })
    }

    /// The same with lines cut into pieces, so that there are about `groups` workgroups, but not more than `max_chunks`
    /// pieces of a line.
    ///
    /// # Errors
    /// There are enough lines, or they are too short.
    pub(crate) fn split(&self, params: &Params) -> Result<Share, Unfit> {
        let share = self.share(params)?;
        let (groups, most) = (params.get("groups")?, params.get("max_chunks")?);
        let wanted = most.min(groups / share.groups().max(1)).max(1);
        let step = share.along * 4;
        let chunk = share.length.div_ceil(wanted).next_multiple_of(step);
        let chunks = share.length.div_ceil(chunk.max(1));
        if chunks < 2 {
            return Err(Unfit("is for few long lines".into()));
        }
        Ok(Share { chunk, chunks, ..share })
    }

    /// The dispatches of a template that does all of a line in mode 0 (`whole`), or in mode 1 what a piece needs to tell the
    /// others, `piece_bytes` of it, and then in mode 2 the rest (`split`). `step` makes a dispatch of a mode, given where the
    /// pieces' memory is.
    ///
    /// # Errors
    /// The template is another one, or the lines are none that the variant can take or is good for.
    pub(crate) fn plan(
        &self,
        template: &str,
        params: &Params,
        piece_bytes: u64,
        step: impl Fn(&Share, u32, Slot) -> Result<Step, Unfit>,
    ) -> Result<Plan, Unfit> {
        match template {
            // There are no pieces; a binding must have something.
            "whole" => Ok(Plan::of(step(&self.share(params)?, 0, Slot::Output(0))?)),
            "split" => {
                let share = self.split(params)?;
                let memory = Slot::Scratch(0);
                let steps = vec![step(&share, 1, memory)?, step(&share, 2, memory)?];
                let pieces = u64::from(share.lines) * u64::from(share.chunks);
                Ok(Plan { steps, scratch: vec![piece_bytes * pieces] })
            }
            other => Err(unknown(other)),
        }
    }
}

impl Share {
    /// Workgroups that have all the lines.
    fn groups(&self) -> u32 {
        self.lines.div_ceil(self.across)
    }

    /// The first constants: workgroup size, `ACROSS`, `ALONG`; then `more`.
    pub(crate) fn constants(&self, more: &[u32]) -> Vec<u32> {
        [&[self.across * self.along, self.across, self.along], more].concat()
    }

    /// Push constants: lines, length, inner, chunk; then `more`.
    pub(crate) fn push(&self, more: &[u32]) -> Vec<u32> {
        [&[self.lines, self.length, self.inner, self.chunk], more].concat()
    }

    /// Workgroups.
    pub(crate) fn grid(&self) -> [u32; 3] {
        // Rows of the same length: one that is nearly empty would be as many workgroups as a full one.
        let rows = self.groups().div_ceil(ACROSS_X);
        [self.groups().div_ceil(rows.max(1)), rows, self.chunks]
    }

    /// Number of lines.
    pub(crate) fn lines(&self) -> u32 {
        self.lines
    }
}

/// The refusal of a template that an operation does not have.
pub(crate) fn unknown(template: &str) -> Unfit {
    Unfit(format!("uses the unknown template '{template}'"))
}

/// A build that has to be there.
pub(crate) fn module(build: &str) -> Result<Module, Unfit> {
    library::module(build).ok_or_else(|| Unfit(format!("has no build '{build}'")))
}

/// What names of builds for devices without 16-bit types call a type.
pub(crate) fn packed_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "f16p",
        DType::BF16 => "bf16p",
        other => other.name(),
    }
}

/// Default of dimensions, for serde.
pub(crate) fn one() -> u64 {
    1
}

/// Default of types, for serde.
pub(crate) fn f32() -> DType {
    DType::F32
}

/// Shapes that exercise every way of sharing lines.
pub(crate) fn shapes() -> impl Iterator<Item = Lines> {
    let shapes = [
        (1, 1, 1),
        (3, 17, 1),
        (2, 64, 1),
        (5, 1000, 1),
        (130, 3, 1),
        (2, 20_000, 1),
        (3, 33, 7),
        (2, 40, 33),
        (1, 3001, 9),
        (0, 8, 1),
    ];
    shapes.into_iter().map(|(outer, length, inner)| Lines { outer, length, inner })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn places_of_lines() {
        let lines = Lines { outer: 2, length: 2, inner: 3 };
        let places: Vec<_> = lines.places().collect();
        assert_eq!(places, [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]]);
    }

    #[test]
    fn pieces_cover_a_line_and_many_lines_have_one() {
        let split = params(r#"{"across":1,"along":128,"groups":512,"max_chunks":64}"#);
        let share = Lines { outer: 2, length: 100_000, inner: 1 }.split(&split).unwrap();
        assert!(share.chunk * share.chunks >= 100_000 && share.chunk * (share.chunks - 1) < 100_000);
        assert_eq!(share.chunk % 512, 0);
        assert!(Lines { outer: 5000, length: 100_000, inner: 1 }.split(&split).is_err());
        let tall = Lines { outer: 100_000, length: 4, inner: 1 }.share(&split).unwrap();
        assert!(tall.grid().iter().all(|n| *n <= 65535), "{:?}", tall.grid());
    }
}
