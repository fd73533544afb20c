//! Drives and workloads of other simulators, as device files and fio jobs.
//!
//! A configuration is read as a list of settings. A converter for each simulator takes those
//! that Prism has and names, next to each field, the setting that it comes from and what is only
//! approximate. Settings that no converter took are listed at the end of the result, so that the
//! reader sees what is missing.

mod device_file;
mod error;
mod femu;
mod femu_options;
mod mqsim;
mod mqsim_flow;
mod mqsim_workload;
mod settings;
mod simplessd;
#[cfg(test)]
mod tests;
mod xml;

pub use error::ImportError;

use prism_ssd::Drive;

use device_file::DeviceFile;
use error::Result;
use settings::Settings;

/// What a configuration became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The text of a device file, or of a job file.
    pub text: String,
    /// One line: what was read, how many of its settings were used, approximated and left out.
    pub summary: String,
    /// Settings that are listed at the end, because Prism has no counterpart or they are unknown.
    pub left_out: usize,
    /// Approximations that are stated in the text.
    pub approximations: usize,
}

/// What a file describes, recognised by its content.
enum Kind<'a> {
    MqsimDrive(roxmltree::Document<'a>),
    MqsimWorkload(roxmltree::Document<'a>),
    SimpleSsd,
    Femu,
}

/// Converts the configuration `text`. `name` is the name of its file without folder and extension;
/// jobs go to the file `jobs`; `scenario`, from 1, selects one of the scenarios of a workload.
///
/// # Errors
/// [`ImportError`] if the text is not a configuration of a known simulator, is damaged, or
/// describes a drive that Prism cannot simulate.
pub fn import(text: &str, name: &str, jobs: &str, scenario: Option<usize>) -> Result<Imported> {
    // Editors on Windows begin a text with a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let kind = recognise(text)?;
    if scenario.is_some() && !matches!(kind, Kind::MqsimWorkload(_)) {
        return Err(ImportError::NoScenarios);
    }
    match kind {
        Kind::MqsimWorkload(document) => mqsim_workload::convert(&document, (name, jobs), scenario),
        Kind::MqsimDrive(document) => {
            let settings = xml::settings(&document);
            drive(settings, DeviceFile::new(name, "MQSim"), mqsim::convert)
        }
        Kind::SimpleSsd => {
            let settings = simplessd::settings(text)?;
            drive(settings, DeviceFile::new(name, "SimpleSSD"), simplessd::convert)
        }
        Kind::Femu => {
            let settings = femu_options::settings(text)?;
            drive(settings, DeviceFile::new(name, "FEMU"), femu::convert)
        }
    }
}

fn recognise(text: &str) -> Result<Kind<'_>> {
    if text.trim_start().starts_with('<') {
        let document = xml::parse(text)?;
        let root = document.root_element().tag_name().name().to_owned();
        return match root.as_str() {
            "MQSim_IO_Scenarios" => Ok(Kind::MqsimWorkload(document)),
            "Execution_Parameter_Set" | "Device_Parameter_Set" => Ok(Kind::MqsimDrive(document)),
            "simplessd" => Err(ImportError::SimpleSsdXml),
            _ => Err(ImportError::Root(root)),
        };
    }
    if femu_options::is_femu(text) {
        return Ok(Kind::Femu);
    }
    if simplessd::is_simplessd(text) { Ok(Kind::SimpleSsd) } else { Err(ImportError::Unknown) }
}

/// A function that turns the settings of one simulator into fields of a device file.
type Converter = fn(&mut Settings, &mut DeviceFile) -> Result<()>;

fn drive(mut settings: Settings, mut file: DeviceFile, convert: Converter) -> Result<Imported> {
    convert(&mut settings, &mut file)?;
    let (spec, small) = file.fit_watermarks().map_err(ImportError::Drive)?;
    // Made, to be sure that the file works.
    Drive::new(small, 1).map_err(ImportError::Drive)?;
    let (geometry, simulator) = (spec.geometry(), file.simulator());
    let used = settings.used();
    let left_out = settings.left_out();
    let summary = format!(
        "{simulator} drive with {} dies, {} for the host: {used} settings used, {} approximations, \
         {} settings left out (listed at the end of the device file)",
        geometry.dies(),
        spec.capacity(),
        file.approximations(),
        left_out.len(),
    );
    let (approximations, count) = (file.approximations(), left_out.len());
    let text = format!("{}{}", file.text(), settings::listing(&left_out));
    Ok(Imported { text, summary, left_out: count, approximations })
}
