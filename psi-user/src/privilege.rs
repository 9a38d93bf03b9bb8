//! Capabilities: what loading needs, and giving everything up after it.

use caps::{CapSet, Capability};

use crate::error::Error;

/// Capabilities that loading and attaching need; CAP_SYS_ADMIN stands for both.
const NEEDED: [Capability; 2] = [Capability::CAP_BPF, Capability::CAP_PERFMON];

/// Fails unless this process may load the programs.
///
/// # Errors
/// Names the capabilities that are missing.
pub fn check() -> Result<(), Error> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::Privilege {
        missing: missing.join(" and "),
    })
}

/// Names of the capabilities that are missing.
pub fn missing() -> Vec<String> {
    let has = |capability| caps::has_cap(None, CapSet::Effective, capability).unwrap_or(false);
    if has(Capability::CAP_SYS_ADMIN) {
        return Vec::new();
    }
    NEEDED
        .into_iter()
        .filter(|&capability| !has(capability))
        .map(|capability| capability.to_string())
        .collect()
}

/// Gives up all capabilities of this thread, for good: what is mapped and open stays usable.
///
/// Threads started later inherit nothing. So call it before any is started.
///
/// # Errors
/// When the kernel refuses.
pub fn drop_all() -> Result<(), caps::errors::CapsError> {
    // A capability can only be raised again from the permitted set; clear the others first.
    for set in [
        CapSet::Ambient,
        CapSet::Inheritable,
        CapSet::Effective,
        CapSet::Permitted,
    ] {
        caps::clear(None, set)?;
    }
    Ok(())
}
