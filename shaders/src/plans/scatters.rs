//! What operations that scatter share: how an update is combined with what is there, on the host, and the sharing of
//! work. `include/scatters.glsl` is the other half.

/// Invocations that share the places which the same indices tell, so that a device is busy: a power of two, at most about
/// one for each update. Each reads all of these indices, so there are not many.
pub(super) fn shares(columns: u64, updates: u64) -> u32 {
    let wanted = (16384 / columns.max(1)).clamp(1, updates.clamp(1, 1024));
    1 << wanted.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_columns_are_shared() {
        assert_eq!(
            (shares(1, 1_000_000), shares(1, 3), shares(20_000, 9), shares(5000, 100)),
            (1024, 2, 1, 2)
        );
        assert_eq!(shares(0, 0), 1);
    }
}
