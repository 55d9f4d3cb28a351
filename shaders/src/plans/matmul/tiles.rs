//! Tiles of the kernels of cooperative matrices.

use crate::{Params, Unfit};

/// Tiles of a kernel of cooperative matrices of `mm` x `mn` x `mk`: `wm` x `wn` results for each subgroup of `wave`, whose teams
/// share the sums in `slices`. Sums go to memory in `pieces`.
pub(super) struct Tiles {
    pub bm: u32,
    pub bn: u32,
    pub bk: u32,
    pub wm: u32,
    pub wn: u32,
    pub stages: u32,
    pub ahead: u32,
    pub matrix: [u32; 3],
    pub wave: u32,
    pub slices: u32,
    pub pieces: u32,
    /// Whether words of the next tile are read between products.
    pub interleaved: bool,
    /// Steps whose fragments of the right operand are on their way to registers; 0 where it goes through shared memory.
    pub ring: u32,
    /// Elements of an operand in 16 bytes.
    pub pack: u32,
}

impl Tiles {
    pub fn of(params: &Params, pack: u32) -> Result<Tiles, Unfit> {
        let p = |name| params.get(name);
        let or_one = |name| params.get(name).unwrap_or(1);
        Ok(Tiles {
            bm: p("bm")?,
            bn: p("bn")?,
            bk: p("bk")?,
            wm: p("wm")?,
            wn: p("wn")?,
            stages: p("stages")?,
            ahead: p("ahead")?,
            matrix: [p("mm")?, p("mn")?, p("mk")?],
            wave: p("wave")?,
            slices: or_one("slices"),
            pieces: or_one("pieces"),
            interleaved: params.get("interleaved").is_ok_and(|flag| flag != 0),
            ring: params.get("ring").unwrap_or(0),
            pack,
        })
    }

    /// Invocations of a team.
    pub fn team(&self) -> u32 {
        self.wave * (self.bm / self.wm) * (self.bn / self.wn)
    }

    /// Invocations, which cover the tiles.
    pub fn lanes_that_fit(&self, turned: bool) -> Result<u32, Unfit> {
        let lanes = self.team() * self.slices;
        let Tiles { bm, bn, bk, .. } = self;
        let unfit = || Unfit(format!("has tiles of {bm}x{bn}x{bk} that {lanes} invocations do not cover"));
        self.fit(turned).then_some(lanes).ok_or_else(unfit)
    }

    /// Whether results of 16 bits in whole octets leave by strips of each subgroup.
    pub fn are_strips(&self) -> bool {
        self.pack == 8 && self.slices == 1 && self.wn.is_multiple_of(8)
    }

    /// 16-byte words of shared memory: the tiles of all teams, and later a piece of their sums.
    pub fn words(&self, rhs_along_k: bool) -> u32 {
        let row = |elements: u32| elements / self.pack + 1;
        let strips =
            if self.are_strips() { self.team() / self.wave * self.matrix[0] * (self.wn / 4 + 1) } else { 0 };
        if self.ring > 0 {
            // Behind the tile, a matrix of each subgroup, for devices that have elements in another order.
            let tiles = self.slices * (self.bm * row(self.bk) + self.team() / self.wave * MATRIX_WORDS);
            return tiles.max(self.slices * (self.bm / self.pieces) * (self.bn / 4 + 1)).max(strips);
        }
        let right = if rhs_along_k { self.bn * row(self.bk) } else { self.bk * row(self.bn) };
        let tiles = self.slices * self.stages * (self.bm * row(self.bk) + right);
        tiles.max(self.slices * (self.bm / self.pieces) * (self.bn / 4 + 1)).max(strips)
    }

    /// Whether a kernel that reads the right operand in fragments has turns of whole rounds of them.
    fn fit_fragments(&self) -> bool {
        let one = [self.stages, self.ahead] == [1; 2] && !self.interleaved;
        self.ring == 0
            || one && self.matrix == [16; 3] && self.wave == 32 && (self.bk / 16).is_multiple_of(self.ring)
    }

    /// Whether invocations have equal parts of the tiles, and matrices divide what subgroups have. Bytes that lie across k
    /// are `turned`, in blocks of four words.
    fn fit(&self, turned: bool) -> bool {
        let [mm, mn, mk] = self.matrix;
        let team = self.team();
        let right = self.bn * self.bk / self.pack / if turned { 4 } else { 1 };
        (self.bm * self.bk / self.pack).is_multiple_of(team)
            && team.is_multiple_of(self.bk / self.pack)
            && (self.ring > 0 || right.is_multiple_of(team))
            && self.fit_fragments()
            && self.bm.is_multiple_of(self.wm)
            && self.bn.is_multiple_of(self.wn)
            && self.wm.is_multiple_of(mm * self.pieces)
            && self.wn.is_multiple_of(mn)
            && self.bk.is_multiple_of(mk)
    }
}

/// Invocations and bytes of shared memory of tiles with `pack` elements of an operand in 16 bytes, whichever way operands lie.
pub(crate) fn tile_needs(params: &Params, pack: u32) -> Result<(u32, u32), Unfit> {
    let tiles = Tiles::of(params, pack)?;
    let Tiles { bm, bn, bk, wm, wn, .. } = tiles;
    let sizes = [bm, bn, bk, wm, wn, tiles.stages, tiles.ahead, tiles.slices, tiles.pieces, tiles.wave];
    if sizes.iter().chain(&tiles.matrix).any(|size| !(1..=MOST_OF_A_TILE).contains(size)) {
        return Err(Unfit(format!("has sizes of tiles that are not from 1 to {MOST_OF_A_TILE}")));
    }
    if tiles.stages.max(tiles.slices).max(tiles.ring) > MOST_TILES || tiles.wave > MOST_LANES {
        return Err(Unfit(format!(
            "has over {MOST_TILES} stages or slices, or subgroups of over {MOST_LANES}"
        )));
    }
    let words = tiles.words(true).max(tiles.words(false));
    Ok((tiles.team() * tiles.slices, words * 16))
}

/// 16-byte words of a matrix of 16-bit elements.
const MATRIX_WORDS: u32 = 32;

/// Rows or columns of a tile that somebody asks for, at most, tiles in shared memory, and invocations of a subgroup.
const MOST_OF_A_TILE: u32 = 1024;
const MOST_TILES: u32 = 16;
const MOST_LANES: u32 = 128;
