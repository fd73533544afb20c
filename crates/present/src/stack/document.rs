//! The matrix for people: a table for each rule and one for write amplification, then what was
//! captured.

use prism_contract::rules::{Rule, Verdict};
use prism_replay::SteadyState;
use prism_report::{Block, Column, Document, Grade, Section, Table, Unit, Value};

use super::{Cell, Combination, Matrix, Measured};

/// Marks a write amplification that had not settled.
const UNSETTLED: &str = "Write amplification had not settled when the repetitions ended in: ";

impl Matrix {
    /// The whole, for a terminal.
    #[must_use]
    pub fn document(&self) -> Document {
        self.head().with(self.captured()).with(self.notes())
    }

    /// The whole, for a page, which also names who breaks the rules.
    #[must_use]
    pub fn page(&self) -> Document {
        self.head().with(self.worst()).with(self.captured()).with(self.notes())
    }

    fn head(&self) -> Document {
        let setup = &self.setup;
        let subtitle = format!(
            "{} devices, {} of memory, seed {}, judged on {}",
            setup.size, setup.memory, setup.seed, setup.device
        );
        let document = Document::new("Applications on file systems", subtitle);
        document.with(self.rules()).with(self.amplification())
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
            section.push(Block::Table(self.table(rule.name(), Unit::Ratio, score)));
        }
        section
    }

    fn amplification(&self) -> Section {
        let mut section = Section::new(
            "Write amplification",
            "Bytes programmed to flash for each byte written, on a drive as large as the device \
             that is full when the application starts.",
        );
        let ratio = |measured: &Measured| measured.write_amplification.into();
        section.push(Block::Table(self.table("", Unit::Ratio, ratio)));
        section
    }

    /// A row for each application and pattern, a column for each file system.
    fn table(&self, caption: &str, unit: Unit, value: impl Fn(&Measured) -> Value) -> Table {
        let mut columns = vec![Column::text("application")];
        columns.extend(self.setup.file_systems.iter().map(|&name| Column::number(name, unit)));
        let mut table = Table::new(caption, columns).whole();
        for (name, row) in self.rows() {
            let mut cells = vec![name.into()];
            cells.extend(row.iter().map(|(_, cell)| match cell {
                Cell::Measured(measured) => value(measured),
                Cell::Impossible => "not possible".into(),
                Cell::Failed(_) => "failed".into(),
            }));
            table.rows.push(cells);
        }
        table
    }

    fn worst(&self) -> Section {
        let mut section = Section::new(
            "Who breaks the rules",
            "The file, or else the folder, with the largest share of what breaks each rule, \
             however little that is.",
        );
        let mut columns = vec![Column::text("trace")];
        columns.extend(Rule::ALL.map(|rule| Column::text(rule.short_name())));
        let mut table = Table::new("", columns).whole();
        for (combination, cell) in &self.cells {
            let Cell::Measured(measured) = cell else { continue };
            let mut row: Vec<Value> = vec![combination.name.as_str().into()];
            row.extend(measured.worst.iter().map(|worst| match worst {
                Some(worst) => {
                    format!("{} ({})", worst.name, Unit::Percent.format(worst.share)).into()
                }
                None => Value::Missing,
            }));
            table.rows.push(row);
        }
        section.push(Block::Table(table));
        section
    }

    fn captured(&self) -> Section {
        let mut section = Section::new(
            "What reached the device",
            "Counted in the phase of the application alone, with what it left in the page cache.",
        );
        let columns = vec![
            Column::text("trace"),
            Column::number("read", Unit::Bytes),
            Column::number("written", Unit::Bytes),
            Column::number("metadata", Unit::Bytes),
            Column::number("places", Unit::Bytes),
            Column::number("flushes", Unit::Count),
            Column::number("discarded", Unit::Bytes),
            Column::number("took", Unit::Nanos),
        ];
        let mut table = Table::new("", columns).whole();
        for (combination, cell) in &self.cells {
            let Cell::Measured(measured) = cell else { continue };
            table.rows.push(vec![
                combination.name.as_str().into(),
                measured.reads.1.into(),
                measured.writes.1.into(),
                measured.metadata.into(),
                measured.unique.into(),
                measured.flushes.into(),
                measured.discards.1.into(),
                measured.took.into(),
            ]);
        }
        section.push(Block::Table(table));
        section
    }

    /// What limits the numbers.
    fn notes(&self) -> Section {
        let mut notes = Vec::new();
        let is_impossible = |app: &str| {
            let is_so = |(combination, cell): &(Combination, Cell)| {
                combination.app == app && matches!(cell, Cell::Impossible)
            };
            self.cells.iter().any(is_so)
        };
        let apps = self.setup.apps.iter().copied();
        let impossible: Vec<_> = apps.filter(|app| is_impossible(app)).collect();
        if !impossible.is_empty() {
            notes.push(format!(
                "Not possible: {} cannot go around the page cache.",
                impossible.join(", ")
            ));
        }
        notes.extend(self.failures().into_iter().map(|why| format!("Failed: {why}.")));
        let unsettled = self.traces(|measured| measured.steady == SteadyState::NotReached);
        if !unsettled.is_empty() {
            notes.push(format!("{UNSETTLED}{}.", unsettled.join(", ")));
        }
        let lossy = self.traces(|measured| measured.lost > 0);
        if !lossy.is_empty() {
            notes.push(format!("Events were lost in: {}.", lossy.join(", ")));
        }
        notes.push(
            "What is done follows from size and seed; how requests fall together, and how much is \
             merged in the background, also depends on the machine, so scores of a second run \
             differ a little."
                .into(),
        );
        let mut section = Section::new("Limits", "");
        section.push(Block::Notes(notes));
        section
    }

    fn traces(&self, is_so: impl Fn(&Measured) -> bool) -> Vec<String> {
        let named = self.cells.iter().filter_map(|(combination, cell)| match cell {
            Cell::Measured(measured) if is_so(measured) => Some(combination.name.clone()),
            _ => None,
        });
        named.collect()
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

    #[test]
    fn the_matrix_has_a_table_for_each_rule_and_says_what_is_missing() {
        let document = matrix().document();
        let text = terminal::render(&document, 100, Style::PLAIN);
        for line in [
            "1 GiB devices, 128 MiB of memory, seed 7, judged on dc-tlc",
            "  application                     ext4     xfs",
            "  rocksdb rand direct             0.95  ! 0.12",
            "  sqlite-wal rand direct  not possible  failed",
            "  rocksdb rand direct              1.5     1.5",
            "Not possible: sqlite-wal cannot go around the page cache.",
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
