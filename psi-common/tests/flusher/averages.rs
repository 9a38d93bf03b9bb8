//! `psi-user`'s averaging period.

/// Two seconds and a jiffy (PSI_FREQ).
pub(crate) const fn period_ns(tick_ns: u64) -> u64 {
    2_000_000_000 + tick_ns
}
