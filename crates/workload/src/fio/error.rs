//! What is wrong with a job description, and where.

/// Why jobs cannot be run. Each names the place: `jobs.fio:3`, or the argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FioError {
    /// No option of this name.
    #[error("{at}: {option} is no fio option{near}")]
    Unknown {
        /// Where.
        at: String,
        /// The option.
        option: String,
        /// Words like it, as a sentence part.
        near: String,
    },
    /// fio has the option; it would change the result and is not simulated.
    #[error(
        "{at}: {option} is a fio option that Prism does not simulate, and leaving it out would \
         change what the jobs mean; see `prism sim --help` for those it does"
    )]
    NotSimulated {
        /// Where.
        at: String,
        /// The option.
        option: String,
    },
    /// A value that is not simulated.
    #[error("{at}: {option}={value} is refused: {why}")]
    Refused {
        /// Where.
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
        /// Where.
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
        /// Where.
        at: String,
        /// What is wrong.
        what: String,
    },
    /// Words of a job that do not go together, or not with the drive.
    #[error("job {job}: {what}")]
    Job {
        /// The job's name.
        job: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// There is nothing to do.
    #[error("no job: give a job file, or --name=NAME and options such as --rw=randwrite")]
    NoJob,
}
