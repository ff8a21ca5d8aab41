//! A tiny seeded generator of random numbers (splitmix64), so that a world is the same for the same seed.

/// Splitmix64: one word of state, good enough for jitter, ids and the order of lists.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included. The slight bias of the remainder does not matter here.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        let span = high.saturating_sub(low).saturating_add(1);
        low + self.next_u64() % span.max(1)
    }

    /// An index into a list of `len` elements; 0 for an empty one.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        let len = u64::try_from(len.max(1)).unwrap_or(1);
        usize::try_from(self.next_u64() % len).unwrap_or(0)
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.index(i + 1);
            items.swap(i, j);
        }
    }

    /// Text that looks like a version 4 UUID, as captures and TiDB servers name themselves.
    pub(crate) fn uuid(&mut self) -> String {
        let (a, b) = (self.next_u64(), self.next_u64());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | ((b >> 48) & 0x3fff),
            b & 0xffff_ffff_ffff
        )
    }
}

/// `len` lower-case hexadecimal digits that follow from `text`: what stands for a git hash of a version.
pub(crate) fn hex_of(text: &str, len: usize) -> String {
    let seed = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut rng = Rng::new(seed);
    let mut digits = String::new();
    while digits.len() < len {
        digits.extend(format!("{:016x}", rng.next_u64()).chars());
    }
    digits.truncate(len);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        for _ in 0..100 {
            assert_eq!(a.range(3, 9), b.range(3, 9));
        }
        assert_eq!(a.uuid(), b.uuid());
        assert_eq!(a.uuid().len(), 36);
    }

    #[test]
    fn a_range_includes_both_ends() {
        let mut rng = Rng::new(1);
        let seen: std::collections::BTreeSet<u64> = (0..500).map(|_| rng.range(2, 4)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), vec![2, 3, 4]);
    }
}
