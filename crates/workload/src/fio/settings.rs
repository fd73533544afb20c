//! The options of one job; the last value of an option applies.

use prism_base::Nanos;

use super::error::FioError;
use super::jobfile::Setting;
use super::value::{self, Amount, KbBase};

/// The options of a job, and how its integers are read.
pub(super) struct Settings<'a> {
    settings: Vec<&'a Setting>,
    base: KbBase,
}

impl<'a> Settings<'a> {
    /// # Errors
    /// [`FioError`] if `kb_base` is neither 1000 nor 1024.
    pub fn new(settings: impl Iterator<Item = &'a Setting>) -> Result<Self, FioError> {
        let mut all = Self { settings: settings.collect(), base: KbBase::Binary };
        let base = all.read("kb_base", |text| match text {
            "1024" => Ok(KbBase::Binary),
            "1000" => Ok(KbBase::Decimal),
            _ => Err("1000 or 1024 is expected".into()),
        })?;
        all.base = base.unwrap_or(KbBase::Binary);
        Ok(all)
    }

    /// The last setting of any of `options`.
    pub fn last_of(&self, options: &[&str]) -> Option<&'a Setting> {
        self.settings.iter().rev().find(|setting| options.contains(&setting.option)).copied()
    }

    pub fn has(&self, option: &str) -> bool {
        self.last_of(&[option]).is_some()
    }

    /// Reads the last value of `option`.
    pub fn read<T>(
        &self,
        option: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, FioError> {
        let Some(setting) = self.last_of(&[option]) else { return Ok(None) };
        read(&setting.value).map(Some).map_err(|allowed| wrong(setting, allowed))
    }

    pub fn text(&self, option: &str) -> Option<&'a str> {
        self.last_of(&[option]).map(|setting| setting.value.as_str())
    }

    pub fn integer(&self, option: &str) -> Result<Option<u64>, FioError> {
        self.read(option, |text| value::integer(text, self.base))
    }

    /// An integer between `low` and `high`, or `default`.
    pub fn count(&self, option: &str, low: u64, high: u64, default: u64) -> Result<u64, FioError> {
        let read = self.read(option, |text| match value::integer(text, self.base)? {
            number if (low..=high).contains(&number) => Ok(number),
            _ => Err(format!("a number from {low} to {high} is expected")),
        })?;
        Ok(read.unwrap_or(default))
    }

    pub fn amount(&self, option: &str) -> Result<Option<Amount>, FioError> {
        self.read(option, |text| value::amount(text, self.base))
    }

    pub fn flag(&self, option: &str) -> Result<bool, FioError> {
        Ok(self.read(option, value::flag)?.unwrap_or(false))
    }

    /// A span of time; a bare number is in `unit`.
    pub fn time(&self, option: &str, unit: Nanos) -> Result<Option<Nanos>, FioError> {
        self.read(option, |text| value::time(text, unit))
    }

    /// The parser of integers.
    pub fn to_integer(&self) -> impl Fn(&str) -> Result<u64, String> + use<> {
        let base = self.base;
        move |text| value::integer(text, base)
    }
}

/// The error of a value that cannot be read.
pub(super) fn wrong(setting: &Setting, allowed: String) -> FioError {
    FioError::Value {
        at: setting.at.clone(),
        option: setting.option.into(),
        value: setting.value.clone(),
        allowed,
    }
}
