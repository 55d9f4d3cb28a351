//! The random numbers of a campaign: seeded, so that a case is the same on every machine and every day.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators").
#[derive(Clone, Debug)]
pub struct Noise(u64);

impl Noise {
    /// Numbers that the seed decides.
    pub fn new(seed: u64) -> Self {
        Noise(seed)
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `count`; 0 where `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % (count.max(1) as u64)) as usize
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// A size that is as likely to be small as to be large: up to `most`.
    pub fn size(&mut self, most: u64) -> u64 {
        let bits = self.below(64 - most.leading_zeros() as usize + 1);
        let number = if bits == 0 { 0 } else { self.next() >> (64 - bits) };
        number.min(most)
    }

    /// One of several, of which there is at least one.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_their_ranges() {
        let mut noise = Noise::new(7);
        for _ in 0..1000 {
            assert!(noise.below(3) < 3 && (2..=5).contains(&noise.between(2, 5)) && noise.size(100) <= 100);
        }
        assert_eq!(Noise::new(1).next(), Noise::new(1).next());
        assert_eq!((Noise::new(1).below(0), Noise::new(1).size(0)), (0, 0));
    }
}
