//! Callers that wait for an fsync at the same time: one of them does it for all.

/// Batches of callers, which end in the order of their numbers.
#[derive(Debug, Default)]
pub struct Batches {
    /// The number of the batch that fills.
    number: u64,
    /// Its files.
    files: Vec<u32>,
    /// The number of the last batch that failed, and its error.
    failed: Option<(u64, i32)>,
}

impl Batches {
    /// Adds a caller to the batch that fills, and returns its number.
    pub fn join(&mut self, file: Option<u32>) -> u64 {
        self.files.extend(file);
        self.number
    }

    /// Takes the files of a batch, which its caller then makes durable; if another caller has done
    /// so, returns how that ended.
    pub fn begin(&mut self, batch: u64) -> Result<Vec<u32>, Result<(), i32>> {
        if self.number > batch {
            // A later failure is reported to callers of earlier batches as well: an error too many,
            // and never one too few.
            let failed = self.failed.filter(|(number, _)| *number >= batch);
            return Err(failed.map_or(Ok(()), |(_, error)| Err(error)));
        }
        self.number += 1;
        Ok(std::mem::take(&mut self.files))
    }

    /// A batch has ended.
    pub fn end(&mut self, batch: u64, ended: Result<(), i32>) {
        if let Err(error) = ended {
            self.failed = Some((batch, error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_syncs_for_all() {
        let mut batches = Batches::default();
        let callers = [batches.join(Some(3)), batches.join(Some(5)), batches.join(None)];
        assert_eq!(batches.begin(callers[1]), Ok(vec![3, 5]));
        // Who comes now may have changed something since.
        let late = batches.join(Some(7));
        batches.end(callers[1], Ok(()));
        assert_eq!(batches.begin(callers[0]), Err(Ok(())));
        assert_eq!(batches.begin(callers[2]), Err(Ok(())));
        assert_eq!(batches.begin(late), Ok(vec![7]));
    }

    /// A caller that gets its turn after later batches have ended still learns that its own failed.
    #[test]
    fn a_failure_reaches_every_caller_of_its_batch() {
        let mut batches = Batches::default();
        let (first, waits) = (batches.join(Some(3)), batches.join(Some(5)));
        assert_eq!(batches.begin(first), Ok(vec![3, 5]));
        batches.end(first, Err(5));
        let later = batches.join(Some(7));
        assert_eq!(batches.begin(later), Ok(vec![7]));
        batches.end(later, Ok(()));
        assert_eq!(batches.begin(waits), Err(Err(5)));
    }
}
