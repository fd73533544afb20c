//! The file of a sweep: a base, lists and ranges of settings; from it the list of designs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prism_workload::fio::options;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use twox_hash::XxHash64;

use crate::env::Outside;
use crate::error::PresentError;
use crate::initial_state::EXTENSION;
use crate::sweep::design::{Design, Files, Inlined, Setting, SweepEnv};
use crate::sweep::document::{File, Leaf, scalar};
use crate::sweep::scalar::Scalar;
use crate::sweep::settings::canonical;
use crate::sweep::space::{Range, Scale, product};
use crate::sweep::workload::{JOBS, MAP, Requests, TRACE, is_fio_option};

/// Most designs of a sweep: all rows are in memory at the end, and each takes some 20 KB.
pub const DESIGNS_MAX: usize = 100_000;

/// The settings that every design has, with the values that apply if the file gives none.
const DEFAULTS: [(&str, &str); 2] = [("device", "dc-tlc"), ("state", "filled")];

/// The setting of the seed of a design.
const SEED: &str = "seed";

/// The tables and keys of the file.
const TABLES: [&str; 4] = ["base", "grid", "random", "repeats"];
/// The keys of the table `random` that are no settings.
const OF_RANDOM: [&str; 2] = ["designs", "seed"];
/// The keys of a range.
const OF_RANGES: [&str; 4] = ["uniform", "log_uniform", "choice", "step"];

/// A setting with its values, one of which a design takes.
#[derive(Clone, Debug)]
struct Axis<V> {
    name: String,
    at: String,
    values: V,
}

/// A file of a sweep that has been read.
#[derive(Clone, Debug)]
pub struct Study {
    name: String,
    folder: PathBuf,
    base: Vec<Axis<Scalar>>,
    grid: Vec<Axis<Vec<Scalar>>>,
    random: Vec<Axis<Range>>,
    samples: usize,
    random_seed: u64,
    repeats: usize,
}

/// The designs of a sweep.
#[derive(Clone, Debug)]
pub struct Designs {
    /// In the order of their numbers.
    pub designs: Vec<Design>,
    /// The names of the settings that differ between designs.
    pub swept: Vec<String>,
    /// A hash of the inputs of all designs.
    pub hash: String,
}

impl Study {
    /// Reads the text of the file called `name`, in which names of files are relative to `folder`.
    ///
    /// # Errors
    /// [`PresentError::Refused`] with the line.
    pub fn parse(name: &str, folder: &Path, text: &str) -> Result<Self, PresentError> {
        let file = File { name, text };
        let tables = file.tables()?;
        let unknown = |key: &&Spanned<Cow<'_, str>>| !TABLES.contains(&key.get_ref().as_ref());
        if let Some(key) = tables.keys().find(unknown) {
            let near = options::near(key.get_ref(), TABLES.into_iter());
            let (at, key) = (file.line(key.span()), key.get_ref());
            let what = format!("{at}: {key}: a sweep has base, grid, random and repeats{near}");
            return Err(PresentError::refused(what));
        }
        let empty = DeTable::new();
        let section = |key: &str| match tables.get(key) {
            None => Ok(&empty),
            Some(value) => value.get_ref().as_table().ok_or_else(|| {
                let at = file.line(value.span());
                PresentError::refused(format!("{at}: {key}: this is a table: write [{key}]"))
            }),
        };
        let mut base = Vec::new();
        for leaf in file.leaves("base", section("base")?, |_| false) {
            base.push(Axis { values: leaf.scalar()?, name: leaf.path, at: leaf.at });
        }
        let mut grid = Vec::new();
        for leaf in file.leaves("grid", section("grid")?, |_| false) {
            grid.push(Axis { values: leaf.list()?, name: leaf.path, at: leaf.at });
        }
        let (mut random, mut samples, mut random_seed) = (Vec::new(), None, 1);
        for leaf in file.leaves("random", section("random")?, is_range) {
            match leaf.path.as_str() {
                "designs" => samples = Some(count(&leaf)? as usize),
                "seed" if leaf.value.is_integer() => random_seed = count(&leaf)?,
                _ => random.push(Axis { values: range(&leaf)?, name: leaf.path, at: leaf.at }),
            }
        }
        if random.is_empty() != samples.is_none() {
            let what = format!(
                "{name}: [random] needs designs, the number of samples, and at least one range"
            );
            return Err(PresentError::refused(what));
        }
        let repeats = match file.leaves("", &tables, |_| true).iter().find(|l| l.path == "repeats")
        {
            Some(leaf) => count(leaf)? as usize,
            None => 1,
        };
        let (name, folder, samples) = (name.to_owned(), folder.to_owned(), samples.unwrap_or(1));
        let study = Self { name, folder, base, grid, random, samples, random_seed, repeats };
        study.check_names()?;
        Ok(study)
    }

    /// Refuses a setting that is given twice.
    fn check_names(&self) -> Result<(), PresentError> {
        let base = self.base.iter().map(|axis| (&axis.name, &axis.at));
        let axes = self.grid.iter().map(|axis| (&axis.name, &axis.at));
        let random = self.random.iter().map(|axis| (&axis.name, &axis.at));
        let axes: Vec<_> = axes.chain(random).collect();
        for all in [base.collect(), axes.clone()] {
            let mut seen = BTreeSet::new();
            if let Some((name, at)) = all.iter().find(|(name, _)| !seen.insert(canonical(name))) {
                let what = format!("{at} {name}: this setting is given twice");
                return Err(PresentError::refused(what));
            }
        }
        match axes.iter().find(|(name, _)| name.as_str() == SEED).filter(|_| self.repeats > 1) {
            Some((name, at)) => {
                let what = format!("{at} {name}: repeats gives seeds, too: leave out one of both");
                Err(PresentError::refused(what))
            }
            None => Ok(()),
        }
    }

    /// Every design, with the content of the files that they name. Everything that does not depend
    /// on how settings are combined is checked. `devices` are the texts of drives without a file,
    /// by the names that settings give them.
    ///
    /// # Errors
    /// [`PresentError`] that names the file of the sweep, the line and the setting, or a file that
    /// cannot be read.
    pub fn designs(
        &self,
        devices: BTreeMap<String, String>,
        env: &impl SweepEnv,
    ) -> Result<Designs, PresentError> {
        let settings = self.settings()?;
        let folder = self.folder.clone();
        let mut files = Files { folder, texts: devices, ..Files::default() };
        let places = self.places();
        for setting in settings.iter().flatten() {
            read(setting, &mut files, env).map_err(|error| {
                let (at, name) = (self.place(&places, &setting.name), &setting.name);
                PresentError::Outside(format!("{at} {name}: {error}").into())
            })?;
        }
        let mut parts: BTreeMap<BTreeSet<String>, Arc<Files>> = BTreeMap::new();
        let of = |(number, settings): (u64, Vec<Setting>)| {
            let names = files.named_by(&settings);
            let part = parts.entry(names).or_insert_with_key(|names| Arc::new(files.only(names)));
            Design::new(number, settings, part.clone())
        };
        let designs: Vec<Design> = (0..).zip(settings).map(of).collect();
        self.check(&designs, env)?;
        let mut hash = XxHash64::with_seed(0);
        designs.iter().for_each(|design| hash.write(design.hash.as_bytes()));
        let hash = format!("{:016x}", hash.finish());
        let of_grid = self.grid.iter().filter(|axis| axis.values.len() > 1);
        let swept = of_grid.map(|axis| axis.name.clone());
        let swept = swept.chain(self.random.iter().map(|axis| axis.name.clone()));
        let swept = swept.chain((self.repeats > 1).then(|| SEED.to_owned())).collect();
        Ok(Designs { designs, swept, hash })
    }

    /// The settings of every design: the grid changes slowest, seeds change fastest.
    fn settings(&self) -> Result<Vec<Vec<Setting>>, PresentError> {
        let too_many = || {
            let what = format!("{}: more than {DESIGNS_MAX} designs", self.name);
            PresentError::refused(what)
        };
        let lists: Vec<&[Scalar]> = self.grid.iter().map(|axis| axis.values.as_slice()).collect();
        let points = product(&lists, DESIGNS_MAX).ok_or_else(too_many)?;
        let count = points.len().checked_mul(self.samples);
        let count = count.and_then(|count| count.checked_mul(self.repeats));
        count.filter(|&count| count <= DESIGNS_MAX).ok_or_else(too_many)?;
        let samples: Vec<Vec<Scalar>> = self
            .random
            .iter()
            .map(|axis| axis.values.samples(self.random_seed, canonical(&axis.name), self.samples))
            .collect();
        let axes = self.grid.iter().map(|axis| axis.name.as_str());
        let axes: Vec<&str> = axes.chain(self.random.iter().map(|a| a.name.as_str())).collect();
        let base = self.base_without(&axes);
        let seed = self.seed()?;
        let mut all = Vec::new();
        for point in &points {
            for sample in 0..self.samples {
                let sampled = samples.iter().map(|values| &values[sample]);
                let values = axes.iter().zip(point.iter().chain(sampled));
                let of_axes = values.map(|(name, value)| setting(name, value.clone()));
                let settings: Vec<_> = base.iter().cloned().chain(of_axes).collect();
                if axes.contains(&SEED) {
                    all.push(settings);
                    continue;
                }
                for repeat in 0..self.repeats as i64 {
                    let mut settings = settings.clone();
                    settings.push(setting(SEED, Scalar::Int(seed.saturating_add(repeat))));
                    all.push(settings);
                }
            }
        }
        Ok(all)
    }

    /// The settings of the base and the defaults that no axis replaces, without the seed.
    fn base_without(&self, axes: &[&str]) -> Vec<Setting> {
        let is_swept = |name: &str| axes.iter().any(|axis| canonical(axis) == canonical(name));
        let given = |name: &str| self.base.iter().any(|axis| axis.name == name);
        let defaults = DEFAULTS.into_iter().filter(|(name, _)| !given(name));
        let defaults = defaults.map(|(name, value)| setting(name, Scalar::Text(value.into())));
        let base = self.base.iter().map(|axis| setting(&axis.name, axis.values.clone()));
        defaults.chain(base).filter(|s| s.name != SEED && !is_swept(&s.name)).collect()
    }

    /// The first seed.
    fn seed(&self) -> Result<i64, PresentError> {
        match self.base.iter().find(|axis| axis.name == SEED) {
            None => Ok(1),
            Some(Axis { values: Scalar::Int(seed), .. }) if *seed >= 0 => Ok(*seed),
            Some(axis) => {
                let what = format!("{} seed: a whole number from 0 is expected", axis.at);
                Err(PresentError::refused(what))
            }
        }
    }

    /// The line of each setting.
    fn places(&self) -> BTreeMap<&str, &str> {
        let base = self.base.iter().map(|axis| (canonical(&axis.name), axis.at.as_str()));
        let grid = self.grid.iter().map(|axis| (canonical(&axis.name), axis.at.as_str()));
        let random = self.random.iter().map(|axis| (canonical(&axis.name), axis.at.as_str()));
        // An axis replaces a setting of the base.
        base.chain(grid).chain(random).collect()
    }

    /// Where the setting `name` was given, for messages.
    fn place(&self, places: &BTreeMap<&str, &str>, name: &str) -> String {
        let place = places.get(canonical(name)).copied();
        place.map_or_else(|| self.name.clone() + ":", str::to_owned)
    }

    /// Checks designs until each value of a list was in one of them.
    fn check(&self, designs: &[Design], env: &impl SweepEnv) -> Result<(), PresentError> {
        let places = self.places();
        let at = |name: &str| self.place(&places, name);
        let is_listed = |name: &str| self.grid.iter().any(|axis| axis.name == name);
        let is_number = |name: &str| {
            let axis = self.random.iter().find(|axis| axis.name == name);
            name == SEED && !is_listed(SEED) || axis.is_some_and(|axis| axis.values.is_numbers())
        };
        let mut seen: BTreeSet<(&str, String)> = BTreeSet::new();
        for design in designs {
            let mut is_new = design.number == 0;
            for Setting { name, value } in design.settings.iter().filter(|s| !is_number(&s.name)) {
                is_new |= seen.insert((name, value.text()));
            }
            if !is_new {
                continue;
            }
            let inlined = Inlined { env, files: &design.files };
            let workload = design.workload(at)?;
            workload.check(&inlined, at)?;
            if let Requests::Trace(selection, _) = &workload.requests {
                env.trace(selection).map_err(PresentError::Outside)?;
            }
        }
        Ok(())
    }
}

fn setting(name: &str, value: Scalar) -> Setting {
    Setting { name: name.to_owned(), value }
}

fn ends_in(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == extension)
}

/// Whether a setting names a file that each process reads again: a trace, a map, or a snapshot.
pub(super) fn names_digested(setting: &str, value: &str) -> bool {
    [TRACE, MAP].contains(&setting) || setting == "state" && ends_in(value, EXTENSION)
}

/// Reads the file that a setting names, if it names one that has not been read.
fn read(setting: &Setting, files: &mut Files, env: &impl SweepEnv) -> Result<(), Outside> {
    let Scalar::Text(name) = &setting.value else { return Ok(()) };
    let path = files.path(Path::new(name));
    let is_text = setting.name == JOBS || setting.name == "device" && ends_in(name, "toml");
    let is_other = names_digested(&setting.name, name);
    if is_text && !files.texts.contains_key(name) {
        files.texts.insert(name.clone(), env.device_text(&path)?);
    }
    if is_other && !files.digests.contains_key(name) {
        files.digests.insert(name.clone(), env.digest(&path)?);
    }
    Ok(())
}

/// A whole number from 1.
fn count(leaf: &Leaf<'_>) -> Result<u64, PresentError> {
    match leaf.scalar() {
        Ok(Scalar::Int(count)) if count > 0 => Ok(count as u64),
        _ => Err(leaf.wrong("a whole number from 1 is expected")),
    }
}

/// Whether a table of `[random]` is a range, and not a part of a path.
fn is_range(table: &DeTable<'_>) -> bool {
    table.keys().any(|key| OF_RANGES.contains(&key.get_ref().as_ref()))
}

fn range(leaf: &Leaf<'_>) -> Result<Range, PresentError> {
    let what = "give { uniform = [LOW, HIGH] }, { log_uniform = [LOW, HIGH] } or \
                { choice = [VALUE, ...] }";
    let wrong = || leaf.wrong(what);
    let table = leaf.value.as_table().ok_or_else(wrong)?;
    let find = |name: &str| table.get(name).map(|value| value.get_ref());
    let known = table.keys().all(|key| OF_RANGES.contains(&key.get_ref().as_ref()));
    let kinds = OF_RANGES[..3].iter().filter(|kind| find(kind).is_some()).count();
    if !known || kinds != 1 || OF_RANDOM.contains(&leaf.path.as_str()) && leaf.path != SEED {
        return Err(wrong());
    }
    if let Some(value) = find("choice") {
        if find("step").is_some() {
            return Err(leaf.wrong("a choice has no step"));
        }
        let inner = Leaf { value, ..leaf.clone() };
        return Ok(Range::Choice(inner.list()?));
    }
    let (ends, scale) = match find("uniform") {
        Some(ends) => (ends, Scale::Uniform),
        None => (find("log_uniform").expect("one of the kinds is there"), Scale::Log),
    };
    let plain = |value: &DeValue<'_>| scalar(value).map_err(|what| leaf.wrong(what));
    let [low, high] = ends.as_array().map_or(&[][..], |ends| ends) else {
        return Err(wrong());
    };
    let (low, high) = (plain(low.get_ref())?, plain(high.get_ref())?);
    if is_fio_option(&leaf.path) && [&low, &high].iter().any(|end| matches!(end, Scalar::Text(_))) {
        return Err(leaf.wrong(
            "a range of a fio option is one of plain numbers, such as [4096, 65536]: fio reads \
             units in its own way",
        ));
    }
    let step = find("step").map(plain).transpose()?;
    Range::new(&low, &high, step.as_ref(), scale).map_err(|what| leaf.wrong(what))
}
