//! Traces that are loaded once and used by many simulations.

use std::sync::{Mutex, PoisonError};

use prism_trace::LoadSpec;

use crate::error::HostError;
use crate::load::{LoadedTrace, digest, load_trace};
use crate::progress::Progress;

/// Traces that are held at once, the ones used last: each takes up to 84 MB of memory.
const HELD_MAX: usize = 4;

/// The traces used last.
#[derive(Debug, Default)]
pub struct TraceCache {
    /// The one used last is at the end.
    held: Mutex<Vec<(LoadSpec, String, LoadedTrace)>>,
}

impl TraceCache {
    /// The trace that `spec` names, whose files must have the digest `wanted`.
    ///
    /// # Errors
    /// [`HostError::Content`] if they have another one, other errors if they cannot be read.
    pub fn load(&self, spec: &LoadSpec, wanted: &str) -> Result<LoadedTrace, HostError> {
        // Another thread that needs the same trace waits until it is there.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_held =
            |(other, digest, _): &(LoadSpec, String, _)| other == spec && digest == wanted;
        let entry = match held.iter().position(is_held) {
            Some(place) => held.remove(place),
            None => {
                for path in &spec.paths {
                    if digest(path)? != wanted {
                        let what =
                            "the file has changed since the sweep was planned; begin it again";
                        return Err(HostError::content(&path.display().to_string(), what));
                    }
                }
                (spec.clone(), wanted.to_owned(), load_trace(spec, &Progress::hidden())?)
            }
        };
        let trace = entry.2.clone();
        held.push(entry);
        let surplus = held.len().saturating_sub(HELD_MAX);
        held.drain(..surplus);
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use prism_trace::Records;

    use super::*;

    fn spec(path: &Path) -> LoadSpec {
        LoadSpec { paths: vec![path.to_path_buf()], ..LoadSpec::default() }
    }

    #[test]
    fn a_trace_is_read_once_and_must_be_the_one_that_was_planned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/formats/msr.csv");
        fs::copy(sample, &path).unwrap();
        let (cache, spec) = (TraceCache::default(), spec(&path));
        let planned = digest(&path).unwrap();
        let error = cache.load(&spec, "0").unwrap_err().to_string();
        assert!(error.contains("t.csv: the file has changed since"), "{error}");
        let count = cache.load(&spec, &planned).unwrap().spool.count();
        assert!(count > 0);
        fs::remove_file(&path).unwrap();
        assert_eq!(cache.load(&spec, &planned).unwrap().spool.count(), count);
        for number in 0..HELD_MAX {
            let other = folder.path().join(number.to_string());
            fs::copy(sample, &other).unwrap();
            let spec = LoadSpec { paths: vec![other], ..spec.clone() };
            cache.load(&spec, &planned).unwrap();
        }
        assert!(cache.load(&spec, &planned).is_err(), "it is no longer held");
    }
}
