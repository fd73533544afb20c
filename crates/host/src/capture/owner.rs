//! The owners of what captures create in shared folders: names have the form
//! `PREFIX-PID-NUMBER`.

use std::path::Path;

/// The process that created what is called `name`; `None` if it was not a capture.
pub(super) fn owner(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.split('-').next()?.parse().ok()
}

/// Whether there is such a process. Its number may have been reused; what the earlier process
/// left then stays until the new one ends.
pub(super) fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_their_process() {
        assert_eq!(owner("prism-77-0", "prism-"), Some(77));
        assert_eq!(owner("prism-x-0", "prism-"), None);
        assert_eq!(owner("trace-77-0", "prism-"), None);
        assert!(is_alive(std::process::id()));
    }
}
