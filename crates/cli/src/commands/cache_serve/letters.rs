//! Values of options with memcached's letters, and what to say about letters that mean nothing
//! here.

/// The options of `-o` that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extended {
    /// Seconds after which an idle connection is closed.
    pub idle_timeout: Option<u32>,
}

/// Reads the options of `-o`, which are separated by commas.
///
/// # Errors
/// What is wrong, and which options there are.
pub fn extended(text: &str) -> Result<Extended, String> {
    let mut options = Extended::default();
    for option in text.split(',') {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "idle_timeout" => {
                let seconds = value.parse().map_err(|_| {
                    format!("idle_timeout={value}: not a number of seconds; give 0 for never")
                })?;
                options.idle_timeout = Some(seconds);
            }
            // The server always refuses connections beyond the limit at once.
            "maxconns_fast" if value.is_empty() => {}
            _ => {
                return Err(format!(
                    "{name:?} is not an option here; there are idle_timeout=SECONDS and \
                     maxconns_fast. Options about memcached's slabs, LRU, threads and extstore \
                     have no counterpart: leave them away"
                ));
            }
        }
    }
    Ok(options)
}

/// Refuses more than one thread.
///
/// # Errors
/// What to do instead.
pub fn threads(text: &str) -> Result<u32, String> {
    match text {
        "1" => Ok(1),
        _ => {
            Err("the server has one thread; leave the option away, or give 1. To use more cores, \
                  run several servers with a device and a port each, as clients distribute keys"
                .to_owned())
        }
    }
}

/// Memcached's letters that the server refuses, and what to do instead.
const REFUSED: [(&str, &str); 12] = [
    ("-M", "a cache on flash always evicts items to make space; leave the letter away"),
    ("-C", "each item has its version for cas; leave the letter away"),
    ("-D", "the prefixes of `stats detail` end with a colon; leave the letter away"),
    ("-E", "there are no storage engines to load; choose a level of flash management by --engine"),
    ("-L", "memory is bounded by --memory, without huge pages; leave the letter away"),
    ("-S", "there is no SASL; use -Y FILE for passwords"),
    ("-Z", "there is no TLS; put a TLS proxy in front of a Unix socket"),
    ("-e", "items are in the file of --device; leave the letter away"),
    ("-f", "there are no classes of slabs; leave the letter away"),
    ("-k", "to lock memory, set MemorySwapMax=0 for the unit; leave the letter away"),
    ("-n", "there are no classes of slabs; leave the letter away"),
    ("-r", "to keep core files, set LimitCORE=infinity for the unit, or ulimit -c unlimited"),
];

/// What to do instead of a letter of memcached that the server refuses.
#[must_use]
pub fn instead(argument: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(letter, _)| *letter == argument).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_o_are_read_or_refused() {
        let check = |text: &str, expected: Option<u32>| {
            assert_eq!(extended(text).map(|found| found.idle_timeout), Ok(expected), "{text}");
        };
        check("idle_timeout=5", Some(5));
        check("maxconns_fast", None);
        check("maxconns_fast,idle_timeout=0", Some(0));
        let refused = |text: &str, part: &str| {
            let error = extended(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        refused("idle_timeout=x", "idle_timeout=x: not a number");
        refused("idle_timeout", "not a number");
        refused("idle_timeout=1,ext_path=/x:1G", "\"ext_path\" is not an option");
        refused("maxconns_fast=2", "\"maxconns_fast\" is not an option");
        refused("", "\"\" is not an option");
    }

    #[test]
    fn one_thread_is_enough() {
        assert_eq!(threads("1"), Ok(1));
        for text in ["0", "4", "x"] {
            assert!(threads(text).unwrap_err().contains("run several servers"), "{text}");
        }
    }

    #[test]
    fn letters_are_known() {
        assert!(instead("-M").unwrap().contains("evicts"));
        assert_eq!(instead("-c"), None);
    }
}
