//! Lines of tensors, which reductions, normalizations and sorts work along, and how workgroups share them. The other half
//! is `include/lines.glsl`.

use halite_ops::{DType, lines::Lines};
use halite_sizes::Size;

use crate::{Params, Plan, Slot, Step, Unfit, plan::narrow};

/// How workgroups share lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Lines of a workgroup.
    pub(crate) across: u32,
    /// Invocations for each of them.
    pub(crate) along: u32,
    /// Elements of a piece of a line.
    pub(crate) chunk: Size,
    /// Pieces of a line, each for another workgroup.
    pub(crate) chunks: Size,
    lines: Size,
    length: Size,
    inner: Size,
}

/// Turns of a loop over a piece of a line: several passes of so many are fewer than llvmpipe ends loops after.
const LONGEST_LOOP: u64 = 4096;

/// Workgroups along x; more go along y, because 65535 is all that every device has.
const ACROSS_X: u32 = 32768;

/// Each line by one workgroup of `along` invocations, whatever it looks like.
///
/// # Errors
/// There are too many elements.
pub(super) fn whole(lines: &Lines, along: u32) -> Result<Share, Unfit> {
    narrow("a number of elements", lines.elements())?;
    let [length, inner] = [narrow("a length", lines.length)?, narrow("inner", lines.inner)?];
    let lines = narrow("a number of lines", lines.count())?;
    Ok(Share { across: 1, along, chunk: length, chunks: 1.into(), lines, length, inner })
}

/// How a variant shares them. Its parameters are `across` and `along`; `packed` (1) when it takes four neighbours at
/// a time; and what it is good for: `min_lines`, `min_inner`, `min_length`, `max_length`.
///
/// # Errors
/// The lines are none that it can take or is good for.
pub(super) fn share(lines: &Lines, params: &Params) -> Result<Share, Unfit> {
    let (across, along) = (params.get("across")?, params.get("along")?);
    let optional = |name, default| params.get(name).unwrap_or(default);
    if !along.is_power_of_two() || across == 0 {
        return Err(Unfit(format!("has {along} invocations along lines, which is no power of two")));
    }
    if optional("packed", 0) == 1 && (lines.inner != 1 || !lines.length.is_multiple_of(4)) {
        return Err(Unfit("takes lines of a multiple of four neighbouring elements".into()));
    }
    let limits = [
        (lines.count(), u64::from(optional("min_lines", 0)), u64::MAX, "a number of lines"),
        (lines.inner, u64::from(optional("min_inner", 0)), u64::MAX, "inner"),
        (
            lines.length,
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
    Ok(Share { across, ..whole(lines, along)? })
}

/// The same with lines cut into pieces, so that there are about `groups` workgroups, but not more than `max_chunks`
/// pieces of a line. With `any` (1) a line may also be one piece: for lengths that are known when the kernel runs.
///
/// # Errors
/// There are enough lines, or they are too short.
pub(super) fn split(lines: &Lines, params: &Params) -> Result<Share, Unfit> {
    let share = share(lines, params)?;
    let any = params.get("any").unwrap_or(0) == 1;
    let (groups, most) = (params.get("groups")?, params.get("max_chunks")?);
    let step = share.along * 4;
    // However long lines are, no piece is longer than loops that no device ends.
    let longest = u64::from(step) * LONGEST_LOOP;
    let least = share.length.div_ceil(longest);
    let wanted = (Size::from(groups) / share.groups().max(1)).min(most).max(least).max(1);
    let chunk = share.length.div_ceil(wanted).next_multiple_of(step);
    if any {
        // Neither is more anyway, which what is known of the length alone does not tell. Lines of nothing have one piece.
        let chunk = chunk.min(longest);
        let chunks = share.length.div_ceil(chunk.max(1)).min(wanted).max(1);
        return Ok(Share { chunk, chunks, ..share });
    }
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
pub(super) fn plan(
    lines: &Lines,
    template: &str,
    params: &Params,
    piece_bytes: u64,
    step: impl Fn(&Share, u32, Slot) -> Result<Step, Unfit>,
) -> Result<Plan, Unfit> {
    match template {
        // There are no pieces; a binding must have something.
        "whole" => Ok(Plan::of(step(&share(lines, params)?, 0, Slot::Output(0))?)),
        "split" => {
            let share = split(lines, params)?;
            let memory = Slot::Scratch(0);
            let steps = vec![step(&share, 1, memory)?, step(&share, 2, memory)?];
            Ok(Plan::new(steps, vec![share.lines * share.chunks * piece_bytes]))
        }
        other => Err(unknown(other)),
    }
}

impl Share {
    /// The same with `across` lines to a workgroup.
    pub(super) fn beside(self, across: u32) -> Share {
        Share { across, ..self }
    }

    /// Workgroups that have all the lines.
    fn groups(&self) -> Size {
        self.lines.div_ceil(self.across)
    }

    /// The first constants: workgroup size, `ACROSS`, `ALONG`; then `more`.
    pub(crate) fn constants(&self, more: &[u32]) -> Vec<u32> {
        [&[self.across * self.along, self.across, self.along], more].concat()
    }

    /// Push constants: lines, length, inner, chunk; then `more`.
    pub(crate) fn push(&self, more: &[Size]) -> Vec<Size> {
        [&[self.lines, self.length, self.inner, self.chunk], more].concat()
    }

    /// Workgroups.
    pub(crate) fn grid(&self) -> [Size; 3] {
        // Rows of the same length: one that is nearly empty would be as many workgroups as a full one.
        let rows = self.groups().div_ceil(ACROSS_X);
        [self.groups().div_ceil(rows.max(1)), rows, self.chunks]
    }

    /// Number of lines.
    pub(crate) fn lines(&self) -> Size {
        self.lines
    }
}

/// The refusal of a template that an operation does not have.
pub(crate) fn unknown(template: &str) -> Unfit {
    Unfit(format!("uses the unknown template '{template}'"))
}

/// What names of builds for devices without 16-bit types call a type.
pub(crate) fn packed_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "f16p",
        DType::BF16 => "bf16p",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn pieces_cover_a_line_and_many_lines_have_one() {
        let given = params(r#"{"across":1,"along":128,"groups":512,"max_chunks":64}"#);
        let piece =
            split(&Lines { outer: 2.into(), length: 100_000.into(), inner: 1.into() }, &given).unwrap();
        assert!(piece.chunk * piece.chunks >= 100_000 && piece.chunk * (piece.chunks - 1) < 100_000);
        assert_eq!(piece.chunk % 512, 0);
        assert!(
            split(&Lines { outer: 5000.into(), length: 100_000.into(), inner: 1.into() }, &given).is_err()
        );
        let any = params(r#"{"across":1,"along":8,"groups":64,"max_chunks":64,"any":1}"#);
        for (length, chunks) in [(0, 1), (5, 1), (33, 2), (1_000_000, 64), (1 << 30, 8192)] {
            let lines = Lines { outer: 1.into(), length: Size::from(length), inner: 1.into() };
            assert_eq!(split(&lines, &any).unwrap().chunks, chunks, "{length}");
        }
        let tall =
            share(&Lines { outer: 100_000.into(), length: 4.into(), inner: 1.into() }, &given).unwrap();
        assert!(tall.grid().iter().all(|n| *n <= 65535), "{:?}", tall.grid());
    }
}
