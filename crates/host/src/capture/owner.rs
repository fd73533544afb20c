//! Whose something is that captures leave in places which all of them share: its name has the
//! number of the process behind a prefix, `PREFIX-PID-NUMBER`.

use std::path::Path;

/// The process that made what is called `name`; none if no capture did.
pub(super) fn owner(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.split('-').next()?.parse().ok()
}

/// Whether there is such a process. A number may have been given anew; what the one before left
/// then stays until that one ends.
pub(super) fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_process() {
        assert_eq!(owner("prism-77-0", "prism-"), Some(77));
        assert_eq!(owner("prism-x-0", "prism-"), None);
        assert_eq!(owner("trace-77-0", "prism-"), None);
        assert!(is_alive(std::process::id()));
    }
}
