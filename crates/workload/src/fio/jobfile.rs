//! Parser of job files and command lines: sections of options, with their locations.
//!
//! On the command line `--name=` begins a job; options before the first one are defaults of all
//! jobs, including those of files. In a file `[NAME]` begins a job and `[global]` sets defaults for
//! the jobs below it. Defaults of a file end with the file, and the jobs of a further file start
//! when the earlier ones have ended.
//!
//! Source: fio's HOWTO, "Job file format" and "Command line options".

use super::error::FioError;
use super::options::{self, JobOption, Role, Takes};

/// An option with its value and location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The option's name in [`options::OPTIONS`].
    pub option: &'static str,
    /// Its value; `1` for a flag without one.
    pub value: String,
    /// The location, for messages.
    pub at: String,
}

/// A job as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its defaults, then its own options; the last value of an option applies.
    pub settings: Vec<Setting>,
    /// The number of defaults in `settings`.
    pub defaults: usize,
    /// Whether it is the first of a further job file.
    pub begins_file: bool,
}

/// The section that the next option belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrentSection {
    /// None: no section has begun in this file.
    Nothing,
    Defaults,
    Job,
}

/// Reads command lines and job files, in the order given.
#[derive(Clone, Debug)]
pub struct JobReader {
    sections: Vec<Section>,
    /// Defaults of the command line, for all jobs.
    defaults: Vec<Setting>,
}

impl Default for JobReader {
    fn default() -> Self {
        Self::new()
    }
}

impl JobReader {
    /// Nothing read yet.
    #[must_use]
    pub fn new() -> Self {
        Self { sections: Vec::new(), defaults: Vec::new() }
    }

    /// Reads `--option=value`, `--option value` and `--flag` arguments. Returns the names of job
    /// files among them, which the caller has to read next.
    ///
    /// # Errors
    /// [`FioError`] names the argument.
    pub fn arguments(&mut self, arguments: &[String]) -> Result<Vec<String>, FioError> {
        let mut files = Vec::new();
        let mut into = CurrentSection::Defaults;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let Some(body) = argument.strip_prefix("--") else {
                if argument.starts_with('-') && argument != "-" {
                    let what = "arguments are --OPTION=VALUE or names of job files".into();
                    return Err(FioError::Syntax { at: argument.clone(), what });
                }
                files.push(argument.clone());
                continue;
            };
            let (name, value) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => {
                    let takes = options::find(body).map_or(Takes::Flag, |option| option.takes);
                    let value = if takes == Takes::Value { rest.next().cloned() } else { None };
                    (body, value)
                }
            };
            let setting = setting(format!("--{name}"), name, value.as_deref())?;
            into = self.take(setting, into);
        }
        Ok(files)
    }

    /// Adds an option of the command line.
    fn take(&mut self, setting: Setting, into: CurrentSection) -> CurrentSection {
        if setting.option == "name" {
            if setting.value == "global" {
                return CurrentSection::Defaults;
            }
            let name = setting.value;
            self.begin(name, self.defaults.clone(), false);
            return CurrentSection::Job;
        }
        match (into, self.sections.last_mut()) {
            (CurrentSection::Job, Some(section)) => section.settings.push(setting),
            _ => self.defaults.push(setting),
        }
        into
    }

    /// Reads the job file called `name`.
    ///
    /// # Errors
    /// [`FioError`] names file and line.
    pub fn file(&mut self, name: &str, text: &str) -> Result<(), FioError> {
        let mut defaults = self.defaults.clone();
        let mut into = CurrentSection::Nothing;
        let mut begins_file = !self.sections.is_empty();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            let at = format!("{name}:{number}");
            let syntax = |what: &str| FioError::Syntax { at: at.clone(), what: what.into() };
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                let Some(section) = rest.strip_suffix(']').filter(|name| !name.is_empty()) else {
                    return Err(syntax("a section is [NAME] alone on its line"));
                };
                if section == "global" {
                    into = CurrentSection::Defaults;
                } else {
                    self.begin(section.to_owned(), defaults.clone(), begins_file);
                    begins_file = false;
                    into = CurrentSection::Job;
                }
                continue;
            }
            if line.split_whitespace().next() == Some("include") {
                return Err(syntax(
                    "include is not supported: put the options of the included file here",
                ));
            }
            let (option, value) = match line.split_once('=') {
                Some((option, value)) => (option.trim(), Some(value.trim())),
                None => (line, None),
            };
            let setting = setting(at.clone(), option, value)?;
            if setting.option == "name" {
                return Err(syntax("in a file a job is named by its section, as [NAME]"));
            }
            match into {
                CurrentSection::Nothing => {
                    return Err(syntax("an option before the first [section]"));
                }
                CurrentSection::Defaults => defaults.push(setting),
                CurrentSection::Job => {
                    self.sections.last_mut().expect("a job has begun").settings.push(setting);
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, name: String, settings: Vec<Setting>, begins_file: bool) {
        self.sections.push(Section { name, defaults: settings.len(), settings, begins_file });
    }

    /// The jobs that were read. Options on the command line without `--name` form one job called
    /// `job`; fio would refuse them.
    ///
    /// # Errors
    /// [`FioError::NoJob`] if there is none.
    pub fn finish(mut self) -> Result<Vec<Section>, FioError> {
        if self.sections.is_empty() && !self.defaults.is_empty() {
            self.begin("job".into(), self.defaults.clone(), false);
        }
        if self.sections.is_empty() { Err(FioError::NoJob) } else { Ok(self.sections) }
    }
}

/// An option with its value, if it is one that is simulated.
///
/// # Errors
/// [`FioError`] names `at`.
pub fn setting(at: String, name: &str, value: Option<&str>) -> Result<Setting, FioError> {
    let Some(option) = options::find(name) else {
        let option = name.to_owned();
        if options::fio_has(name) {
            return Err(FioError::NotSimulated { at, option });
        }
        let near = options::near(name, options::names());
        return Err(FioError::Unknown { at, option, near });
    };
    let value = match (value, option.takes) {
        (Some(value), _) => value.to_owned(),
        (None, Takes::Flag) => "1".into(),
        (None, Takes::Value) => {
            let what = format!("{name} needs a value, as {name}=VALUE");
            return Err(FioError::Syntax { at, what });
        }
    };
    if let Some(why) = refused(option, &value) {
        return Err(FioError::Refused { at, option: name.into(), value, why });
    }
    Ok(Setting { option: option.name, value, at })
}

fn refused(option: &JobOption, value: &str) -> Option<String> {
    if ["${", "$ncpus", "$mb_memory", "$pagesize"].iter().any(|name| value.contains(name)) {
        return Some("a run depends on its options alone: write the value itself".into());
    }
    match option.role {
        Role::Only(values, why) if !values.contains(&value) => Some(why.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options_of(section: &Section) -> Vec<(&str, &str)> {
        section.settings.iter().map(|s| (s.option, s.value.as_str())).collect()
    }

    fn arguments(line: &str) -> Result<(Vec<Section>, Vec<String>), FioError> {
        let line: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut reader = JobReader::new();
        let files = reader.arguments(&line)?;
        reader.finish().map(|sections| (sections, files))
    }

    #[test]
    fn names_begin_jobs_on_the_command_line() {
        let line = "--blocksize=8k --name=a --rw write x.fio --name=global --norandommap --name=b";
        let (sections, files) = arguments(line).unwrap();
        assert_eq!(files, ["x.fio"]);
        assert_eq!(options_of(&sections[0]), [("bs", "8k"), ("rw", "write")]);
        assert_eq!(options_of(&sections[1]), [("bs", "8k"), ("norandommap", "1")]);
        assert_eq!((sections[0].defaults, sections[1].defaults), (1, 2));
    }

    #[test]
    fn files_have_sections_comments_and_several_globals() {
        let text =
            "# a\n; b\n[global]\n rw = read \nstonewall\n[a]\nbs=8k\n[global]\nbs=16k\n[b]\n";
        let mut reader = JobReader::new();
        reader.arguments(&["--size=1m".into()]).unwrap();
        reader.file("one.fio", text).unwrap();
        reader.file("two.fio", "[c]\n").unwrap();
        let sections = reader.finish().unwrap();
        let head = [("size", "1m"), ("rw", "read"), ("stonewall", "1")];
        assert_eq!(options_of(&sections[0]), [&head[..], &[("bs", "8k")]].concat());
        assert_eq!(options_of(&sections[1]), [&head[..], &[("bs", "16k")]].concat());
        assert_eq!(options_of(&sections[2]), [("size", "1m")]);
        assert_eq!(sections[0].settings[1].at, "one.fio:4");
        let begins: Vec<_> = sections.iter().map(|s| s.begins_file).collect();
        assert_eq!(begins, [false, false, true]);
    }

    #[test]
    fn errors_name_option_and_line() {
        let check = |text: &str, expected: &str| {
            let message = JobReader::new().file("j.fio", text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text:?}: {message}");
        };
        check("[a]\niodpeth=3", "j.fio:2: iodpeth is no fio option (did you mean iodepth?)");
        check("[a]\n\nlatency_target=1ms", "j.fio:3: latency_target is a fio option that Prism");
        check("[a]\ninclude x.fio", "j.fio:2: include is not supported");
        check("[a]\nbuffered=1", "j.fio:2: buffered=1 is refused: no page cache is simulated");
        check("[a]\ndirect=0", "j.fio:2: direct=0 is refused");
        check("[a]\nthinktime_spin=10", "j.fio:2: thinktime_spin=10 is refused");
        check("[a]\nrandrepeat=0", "--seed or randseed");
        check("[a]\nsize=${SIZE}", "write the value itself");
        check("[a]\nsize=2*$mb_memory", "write the value itself");
        check("[a]\nrw", "rw needs a value");
        check("rw=read", "before the first [section]");
        check("[a\nrw=read", "a section is [NAME]");
        check("[a]\nname=b", "named by its section");
        for option in options::NOT_SIMULATED.split_whitespace() {
            check(
                &format!("[a]\nrw=read\n{option}=1"),
                &format!("j.fio:3: {option} is a fio option"),
            );
        }
    }

    #[test]
    fn errors_name_the_argument() {
        let check = |line: &str, expected: &str| {
            let message = arguments(line).unwrap_err().to_string();
            assert!(message.contains(expected), "{line}: {message}");
        };
        check("--name=a --iodepht=4", "--iodepht: iodepht is no fio option (did you mean iodepth");
        check("--name=a -x", "-x: arguments are");
        check("", "no job: give a job file with a section for each job");
        check("[global]\nrw=read\n", "no job");
        assert_eq!(arguments("--rw=read").unwrap().0[0].name, "job");
        check("--name=a --rw", "--rw: rw needs a value");
    }
}
