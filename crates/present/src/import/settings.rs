//! The settings of a configuration: read by name, counted, and listed where they were not used.

use super::error::{ImportError, Result};

/// One setting of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name there, with its section where names repeat.
    pub name: String,
    /// Its value as text.
    pub value: String,
    /// Its line, from 1.
    pub line: usize,
}

/// A value and where it comes from: the name of a setting, or the simulator's default.
#[derive(Clone, Debug)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// The text for the comment next to the field.
    pub origin: String,
}

/// A setting that is listed at the end of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The setting.
    pub setting: Setting,
    /// Why Prism has no counterpart; `None` for a setting that is not known.
    pub why: Option<String>,
}

/// All settings of a file.
#[derive(Debug)]
pub struct Settings {
    simulator: &'static str,
    /// Known settings without a counterpart, with the reason. A name that ends in `*` is the
    /// beginning of several.
    without_counterpart: &'static [(&'static str, &'static str)],
    all: Vec<Setting>,
    used: Vec<bool>,
    /// Reasons that depend on other settings.
    reasons: Vec<(String, String)>,
}

impl Settings {
    /// The settings `all` of a file of `simulator`.
    pub fn new(
        simulator: &'static str,
        without_counterpart: &'static [(&'static str, &'static str)],
        all: Vec<Setting>,
    ) -> Self {
        let used = vec![false; all.len()];
        Self { simulator, without_counterpart, all, used, reasons: Vec::new() }
    }

    /// The setting called `name`, which then counts as used. The last one counts, as in every
    /// simulator here.
    fn take(&mut self, name: &str) -> Option<Setting> {
        let at = self.all.iter().rposition(|setting| setting.name == name)?;
        self.used[at] = true;
        Some(self.all[at].clone())
    }

    /// The value of `name` through `parse`, or `default`.
    fn given<T>(
        &mut self,
        name: &str,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Given<T>> {
        let Some(setting) = self.take(name) else {
            let origin = format!("{name} ({}'s default)", self.simulator);
            return Ok(Given { value: default, origin });
        };
        match parse(&setting.value) {
            Ok(value) => Ok(Given { value, origin: name.into() }),
            Err(why) => Err(refused(&setting, &why)),
        }
    }

    /// The product of `parts`, the shape of all flash in bytes. Smaller products of them then have
    /// no overflow either.
    ///
    /// # Errors
    /// [`ImportError::Value`] naming the setting `name` if it is more than any drive has.
    pub fn flash_bytes(&self, name: &str, parts: &[u32]) -> Result<u64> {
        const MOST: u64 = 1 << 60;
        let product =
            parts.iter().try_fold(1, |product: u64, &part| product.checked_mul(part.into()));
        product.filter(|bytes| *bytes <= MOST).ok_or_else(|| {
            self.refuse(name, "all pages of all blocks, planes, dies and channels are too many")
        })
    }

    /// The value of `name` in the file, without counting it as used.
    pub fn peek(&self, name: &str) -> Option<&str> {
        let found = self.all.iter().rfind(|setting| setting.name == name);
        found.map(|setting| setting.value.as_str())
    }

    /// Whether the file has this setting.
    pub fn has(&self, name: &str) -> bool {
        self.peek(name).is_some()
    }

    /// A whole number, at least `least`.
    pub fn count(&mut self, name: &str, default: u32, least: u32) -> Result<Given<u32>> {
        self.given(name, default, |text| {
            let number: u32 = text.parse().map_err(|_| "a whole number is expected".to_owned())?;
            if number < least {
                return Err(format!("must be at least {least}"));
            }
            Ok(number)
        })
    }

    /// A whole number of 64 bits.
    pub fn long(&mut self, name: &str, default: u64) -> Result<Given<u64>> {
        self.given(name, default, |text| {
            text.parse().map_err(|_| "a whole number is expected".to_owned())
        })
    }

    /// A number from `least` to `most`, both included.
    pub fn number(
        &mut self,
        name: &str,
        default: f64,
        (least, most): (f64, f64),
    ) -> Result<Given<f64>> {
        self.given(name, default, |text| match text.parse::<f64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            Ok(_) => Err(format!("must be from {least} to {most}")),
            Err(_) => Err("a number is expected".into()),
        })
    }

    /// A switch; simulators write true, 1, on or yes.
    pub fn flag(&mut self, name: &str, default: bool) -> Result<Given<bool>> {
        self.given(name, default, |text| match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(true),
            "false" | "0" | "off" | "no" => Ok(false),
            _ => Err("true or false is expected".into()),
        })
    }

    /// One of `known`, which are compared without regard to case.
    pub fn choice<T: Copy>(
        &mut self,
        name: &str,
        default: T,
        known: &[(&str, T)],
    ) -> Result<Given<T>> {
        self.given(name, default, |text| {
            let found = known.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
            found.map(|&(_, value)| value).ok_or_else(|| {
                let words: Vec<_> = known.iter().map(|&(word, _)| word).collect();
                format!("expected is one of {}", words.join(", "))
            })
        })
    }

    /// The text of `name`, or `None`.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.take(name).map(|setting| setting.value)
    }

    /// Lists `name` among those without a counterpart for the reason `why`, which depends on other
    /// settings.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.reasons.push((name.into(), why.into()));
    }

    /// Refuses the value of `name` in this combination.
    pub fn refuse(&self, name: &str, why: &str) -> ImportError {
        match self.all.iter().rfind(|setting| setting.name == name) {
            Some(setting) => refused(setting, why),
            None => ImportError::Line { line: 1, what: format!("{name} is missing: {why}") },
        }
    }

    /// How many settings were used.
    pub fn used(&self) -> usize {
        self.used.iter().filter(|used| **used).count()
    }

    /// The settings that were not used, in the order of the file.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let unused = self.all.iter().enumerate().filter(|(at, _)| !self.used[*at]);
        unused.map(|(at, setting)| self.explain(at, setting)).collect()
    }

    fn explain(&self, at: usize, setting: &Setting) -> LeftOut {
        let again = self.all[at + 1..].iter().find(|later| later.name == setting.name);
        let known = self.without_counterpart.iter().find(|(name, _)| {
            let start = name.strip_suffix('*');
            start.map_or(*name == setting.name, |start| setting.name.starts_with(start))
        });
        let reason = self.reasons.iter().rfind(|(name, _)| *name == setting.name);
        let why = again
            .map(|later| format!("line {} gives it again", later.line))
            .or_else(|| reason.map(|(_, why)| why.clone()))
            .or_else(|| known.map(|&(_, why)| why.to_owned()));
        LeftOut { setting: setting.clone(), why }
    }
}

fn refused(setting: &Setting, why: &str) -> ImportError {
    ImportError::Value {
        line: setting.line,
        name: setting.name.clone(),
        value: setting.value.clone(),
        why: why.into(),
    }
}

/// The settings of a text of lines `NAME = VALUE`, with `#` and `;` before comments. In front of
/// the name goes that of the `[section]` if `with_sections`.
pub fn lines(text: &str, with_sections: bool) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    let mut section = String::new();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split(['#', ';']).next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        if let Some(name) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{}.", name.trim());
            continue;
        }
        let Some((name, value)) = content.split_once('=') else {
            let what = format!("{content:?} is neither NAME = VALUE nor a [section]");
            return Err(ImportError::Line { line, what });
        };
        let prefix = if with_sections { section.as_str() } else { "" };
        let name = format!("{prefix}{}", name.trim());
        settings.push(Setting { name, value: value.trim().into(), line });
    }
    Ok(settings)
}

/// The comment that lists `left_out`, or nothing if there is none.
pub fn listing(left_out: &[LeftOut]) -> String {
    let (known, unknown): (Vec<_>, Vec<_>) = left_out.iter().partition(|one| one.why.is_some());
    let mut text = String::new();
    for (heading, part) in [("without a counterpart", known), ("not understood", unknown)] {
        if part.is_empty() {
            continue;
        }
        text.push_str(&format!("\n# Settings {heading} ({}):\n", part.len()));
        for LeftOut { setting: Setting { name, value, line }, why } in part {
            let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
            text.push_str(&comment(&format!("line {line}: {name} = {value}{why}"), "#   "));
        }
    }
    text
}

/// `text` as lines of a comment that begin with `mark`, without control characters.
pub fn comment(text: &str, mark: &str) -> String {
    const COLUMNS: usize = 98;
    let clean = without_control(text);
    let mut out = String::new();
    let mut line = mark.trim_end().to_owned();
    let mut indent = &mark[mark.trim_end().len()..];
    for word in clean.split(' ').filter(|word| !word.is_empty()) {
        let empty = line.len() <= mark.len();
        if !empty && line.chars().count() + indent.len() + word.chars().count() > COLUMNS {
            out.push_str(&line);
            out.push('\n');
            line = mark.trim_end().to_owned();
            indent = if mark.ends_with("   ") { "     " } else { " " };
        }
        line.push_str(indent);
        line.push_str(word);
        indent = " ";
    }
    out.push_str(&line);
    out.push('\n');
    out
}

/// `text` with a question mark for each control character.
pub fn without_control(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
