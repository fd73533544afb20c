//! The matrix as a document: a table for each rule and one for write amplification, then what
//! was captured.

use prism_contract::rules::{Rule, Verdict};
use prism_report::{Block, Document, Grade, Section, Table, Unit, Value};

use super::{Cell, Matrix, Measured};

/// Precedes the traces whose write amplification was not steady.
const UNSETTLED: &str = "Write amplification was not steady after the last repetition of: ";

impl Matrix {
    /// The document for a terminal.
    #[must_use]
    pub fn document(&self) -> Document {
        if !self.unanalysed().is_empty() {
            return self.traces_alone();
        }
        self.head().with(self.captured()).with(self.notes())
    }

    /// The document for an HTML page, which also has the worst offenders.
    #[must_use]
    pub fn page(&self) -> Document {
        if !self.unanalysed().is_empty() {
            return self.traces_alone();
        }
        self.head().with(self.worst()).with(self.captured()).with(self.notes())
    }

    /// The list of traces that are to be analysed later.
    fn traces_alone(&self) -> Document {
        let captured = self.unanalysed();
        let table = Table::listing(&captured)
            .text("trace", |captured| captured.trace.as_str())
            .text("captured by", |captured| captured.backend)
            .number("lost events", Unit::Count, |captured| captured.lost);
        let lead = "Each is analysed by prism report TRACE --phase app.";
        let section = Section::new("Traces", lead).with(table.whole(""));
        self.titled("not replayed").with(section).with(self.notes())
    }

    fn head(&self) -> Document {
        let document = self.titled(&format!("replayed on {}", self.setup.device));
        document.with(self.rules()).with(self.amplification())
    }

    fn titled(&self, replayed: &str) -> Document {
        let setup = &self.setup;
        let subtitle = format!(
            "{} devices, {} of memory, seed {}, {replayed}",
            setup.size, setup.memory, setup.seed
        );
        Document::new("Applications on file systems", subtitle)
    }

    fn rules(&self) -> Section {
        let mut section = Section::new(
            "The unwritten contract",
            "How far each rule is kept, from 0 to 1; ~ is strained, ! is broken.",
        );
        for (place, rule) in Rule::ALL.into_iter().enumerate() {
            let score = |measured: &Measured| {
                let (score, verdict) = measured.rules[place];
                score.map_or(Value::Missing, |score| Value::Graded(score, grade(verdict)))
            };
            section.push(self.table(rule.name(), Unit::Ratio, score));
        }
        section
    }

    fn amplification(&self) -> Section {
        let lead = "Bytes programmed to flash per byte written, on a drive as large as the device, \
                    full when the application starts.";
        let ratio = |measured: &Measured| measured.write_amplification.into();
        Section::new("Write amplification", lead).with(self.table("", Unit::Ratio, ratio))
    }

    /// A row for each application and pattern, a column for each file system.
    fn table(&self, caption: &str, unit: Unit, value: impl Fn(&Measured) -> Value) -> Table {
        let rows: Vec<_> = self.rows().collect();
        let mut listing = Table::listing(&rows).text("application", |(name, _)| name.as_str());
        for (place, &name) in self.setup.file_systems.iter().enumerate() {
            listing = listing.number(name, unit, |(_, row)| match &row[place].1 {
                Cell::Measured(measured) => value(measured),
                Cell::Impossible(_) => "not possible".into(),
                Cell::Failed(_) => "failed".into(),
                Cell::Captured(_) => "not replayed".into(),
            });
        }
        listing.whole(caption)
    }

    /// The combinations that were measured.
    fn measured(&self) -> Vec<(&str, &Measured)> {
        let measured = self.cells.iter().filter_map(|(combination, cell)| match cell {
            Cell::Measured(measured) => Some((combination.name.as_str(), &**measured)),
            Cell::Impossible(_) | Cell::Failed(_) | Cell::Captured(_) => None,
        });
        measured.collect()
    }

    fn worst(&self) -> Section {
        let measured = self.measured();
        let mut listing = Table::listing(&measured).text("trace", |&(name, _)| name);
        for (place, rule) in Rule::ALL.into_iter().enumerate() {
            listing = listing.text(rule.short_name(), |(_, measured)| {
                let worst = measured.worst[place].as_ref()?;
                Some(format!("{} ({})", worst.name, Unit::Percent.format(worst.share)))
            });
        }
        let lead = "The file, or else the folder, with the largest share of the violations of each \
                    rule, however few these are.";
        Section::new("Who breaks the rules", lead).with(listing.whole(""))
    }

    fn captured(&self) -> Section {
        let measured = self.measured();
        let table = Table::listing(&measured)
            .text("trace", |&(name, _)| name)
            .number("read", Unit::Bytes, |(_, measured)| measured.reads.1)
            .number("written", Unit::Bytes, |(_, measured)| measured.writes.1)
            .number("metadata", Unit::Bytes, |(_, measured)| measured.metadata)
            .number("places", Unit::Bytes, |(_, measured)| measured.unique)
            .number("flushes", Unit::Count, |(_, measured)| measured.flushes)
            .number("discarded", Unit::Bytes, |(_, measured)| measured.discards.1)
            .number("took", Unit::Nanos, |(_, measured)| measured.took);
        let lead =
            "Counted in the phase of the application, with its last write-back of the page cache.";
        Section::new("What reached the device", lead).with(table.whole(""))
    }

    /// Notes on what limits the numbers.
    fn notes(&self) -> Section {
        let mut notes = self.impossible();
        notes.extend(self.failures().into_iter().map(|why| format!("Failed: {why}.")));
        let unsettled = self.traces(|measured| measured.steady.reached() == Some(false));
        if !unsettled.is_empty() {
            notes.push(format!("{UNSETTLED}{}.", unsettled.join(", ")));
        }
        let lossy = self.traces(|measured| measured.lost > 0);
        if !lossy.is_empty() {
            notes.push(format!("Events were lost in: {}.", lossy.join(", ")));
        }
        notes.push(
            "Size and seed determine the operations of an application. The timing of requests, \
             and how much is compacted in the background, also depends on the machine, so scores \
             of a second run differ a little."
                .into(),
        );
        Section::new("Limits", "").with(Block::Notes(notes))
    }

    /// For each reason why combinations are not possible, the applications.
    fn impossible(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (combination, cell) in &self.cells {
            let Cell::Impossible(why) = cell else { continue };
            let place = reasons.iter().position(|(reason, _)| reason == why);
            let place = place.unwrap_or_else(|| {
                reasons.push((why, Vec::new()));
                reasons.len() - 1
            });
            let apps = &mut reasons[place].1;
            if !apps.contains(&combination.app) {
                apps.push(combination.app);
            }
        }
        let note =
            |(why, apps): &(&str, Vec<&str>)| format!("Not possible: {} {why}.", apps.join(", "));
        reasons.iter().map(note).collect()
    }

    fn traces(&self, is_so: impl Fn(&Measured) -> bool) -> Vec<&str> {
        let measured = self.measured().into_iter();
        measured.filter(|(_, measured)| is_so(measured)).map(|(name, _)| name).collect()
    }
}

fn grade(verdict: Verdict) -> Grade {
    match verdict {
        Verdict::Kept => Grade::Kept,
        Verdict::Strained => Grade::Strained,
        Verdict::Broken => Grade::Broken,
        Verdict::Unknown => Grade::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use prism_report::{Style, html, terminal};

    use super::super::tests::matrix;
    use super::super::{Captured, Cell, Combination};

    #[test]
    fn traces_alone_are_listed() {
        let mut matrix = matrix();
        let captured = |trace: &str| {
            Cell::Captured(Captured { trace: trace.into(), backend: "ftrace", lost: 3 })
        };
        matrix.cells[0].1 = captured("t/ext4-rocksdb-rand-direct.parquet");
        matrix.cells[1].1 = captured("t/xfs-rocksdb-rand-direct.parquet");
        let text = terminal::render(&matrix.document(), 100, Style::PLAIN);
        for line in [
            "1 GiB devices, 128 MiB of memory, seed 7, not replayed",
            "t/ext4-rocksdb-rand-direct.parquet",
            "Failed: xfs-sqlite-wal-rand-direct: disk full.",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }

    /// Each reason is given once, with its applications.
    #[test]
    fn what_is_not_possible_is_said_with_its_reason() {
        let mut matrix = matrix();
        let mut add = |app, why| {
            let combination = Combination { app, ..matrix.cells[2].0.clone() };
            matrix.cells.push((combination, Cell::Impossible(why)));
        };
        add("overwrite-zipf", "cannot have a pattern other than rand");
        add("leveldb", "cannot bypass the page cache");
        add("leveldb", "cannot bypass the page cache");
        let expected = [
            "Not possible: sqlite-wal, leveldb cannot bypass the page cache.",
            "Not possible: overwrite-zipf cannot have a pattern other than rand.",
        ];
        assert_eq!(matrix.impossible(), expected);
    }

    #[test]
    fn the_matrix_has_a_table_for_each_rule_and_says_what_is_missing() {
        let document = matrix().document();
        let text = terminal::render(&document, 100, Style::PLAIN);
        for line in [
            "1 GiB devices, 128 MiB of memory, seed 7, replayed on dc-tlc",
            "  application                     ext4     xfs",
            "  rocksdb rand direct             0.95  ! 0.12",
            "  sqlite-wal rand direct  not possible  failed",
            "  rocksdb rand direct              1.5     1.5",
            "Not possible: sqlite-wal cannot bypass the page cache.",
            "Failed: xfs-sqlite-wal-rand-direct: disk full.",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
        assert_eq!(text.matches("! 0.12").count(), 5);
        assert!(!text.contains("s.db"), "a screen has no room for them");
        let page = html::render(&matrix().page());
        assert!(page.contains("s.db (50%)"));
        assert_eq!(page.matches("<td class=\"n broken\">! 0.12").count(), 5);
    }
}
