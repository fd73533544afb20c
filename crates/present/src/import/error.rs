//! Why a configuration cannot be imported.

use prism_ssd::DriveSpecError;

/// What can fail because of a configuration.
pub type Result<T, E = ImportError> = std::result::Result<T, E>;

/// Why a configuration of another simulator cannot be imported.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// No known format.
    #[error(
        "this is no configuration of a known simulator; known are ssdconfig.xml and workload.xml \
         of MQSim, .cfg files of SimpleSSD 2, and scripts, options or .conf files of FEMU"
    )]
    Unknown,
    /// XML, but of something else.
    #[error(
        "the XML has the root element <{0}>; MQSim's have Execution_Parameter_Set (a drive) or \
         MQSim_IO_Scenarios (a workload)"
    )]
    Root(String),
    /// The newer format of SimpleSSD.
    #[error("this is the XML of SimpleSSD 2.1 or later; only .cfg files of SimpleSSD 2.0 are read")]
    SimpleSsdXml,
    /// The older format of SimpleSSD.
    #[error("this file of SimpleSSD 1 has no flash times; only .cfg files of SimpleSSD 2 are read")]
    SimpleSsd1,
    /// The requests of SimpleSSD, not the drive.
    #[error(
        "this file describes requests for SimpleSSD-Standalone, not a drive; give the file with \
         the sections [pal] and [ftl]"
    )]
    SimpleSsdRequests,
    /// A line that does not have the form of the format.
    #[error("line {line}: {what}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A setting has a value that cannot be used.
    #[error("line {line}: {name} = {value}: {why}")]
    Value {
        /// From 1.
        line: usize,
        /// The setting.
        name: String,
        /// Its value as text.
        value: String,
        /// What is expected.
        why: String,
    },
    /// The settings describe a drive that Prism cannot simulate.
    #[error("the drive cannot be simulated: {0}")]
    Drive(DriveSpecError),
    /// `--scenario` for a file without scenarios.
    #[error("--scenario is for workload files of MQSim; this file describes a drive")]
    NoScenarios,
    /// A scenario that does not exist.
    #[error("there is no scenario {asked}; the file has {known}")]
    Scenario {
        /// From 1.
        asked: usize,
        /// How many there are.
        known: usize,
    },
}
