//! Errors in a job description, with their location.

/// Why jobs cannot be run. Most name the location: `jobs.fio:3`, or the argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FioError {
    /// No option of this name.
    #[error("{at}: {option} is no fio option{near}")]
    Unknown {
        /// The location.
        at: String,
        /// The option.
        option: String,
        /// Similar names, as a part of a sentence.
        near: String,
    },
    /// fio has the option; it would change the result and is not simulated.
    #[error(
        "{at}: {option} is a fio option that Prism does not simulate, and leaving it out would \
         change what the jobs mean; see `prism sim --help` for those it does"
    )]
    NotSimulated {
        /// The location.
        at: String,
        /// The option.
        option: String,
    },
    /// A value that is not simulated.
    #[error("{at}: {option}={value} is refused: {why}")]
    Refused {
        /// The location.
        at: String,
        /// The option.
        option: String,
        /// Its value.
        value: String,
        /// Why, and what to do.
        why: String,
    },
    /// A value that cannot be read.
    #[error("{at}: {option}={value:?}: {allowed}")]
    Value {
        /// The location.
        at: String,
        /// The option.
        option: String,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A line or argument that is neither a section, nor an option, nor a comment.
    #[error("{at}: {what}")]
    Syntax {
        /// The location.
        at: String,
        /// What is wrong.
        what: String,
    },
    /// Options of a job that do not combine, or not with the drive.
    #[error("job {job}: {what}")]
    Job {
        /// The job's name.
        job: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// There is no job.
    #[error(
        "no job: give a job file with a section for each job, such as [job], or --name=NAME and \
         options such as --rw=randwrite"
    )]
    NoJob,
}
