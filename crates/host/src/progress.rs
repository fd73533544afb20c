//! The progress of a long step, on standard error, only if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that is redrawn; nothing if standard error is not a terminal.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

/// Redraws per second: few, so that they cost no time.
const REDRAWS_PER_SECOND: u8 = 5;

impl Progress {
    /// No display, whatever standard error is.
    #[must_use]
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    /// A display on standard error, if that is a terminal.
    #[must_use]
    pub fn on_stderr() -> Self {
        // The target hides itself if standard error is not a terminal.
        let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
        Self { bar: ProgressBar::with_draw_target(None, target) }
    }

    /// Starts a step called `label` over `bytes` bytes, if the number is known.
    pub fn start_bytes(&self, label: &str, bytes: Option<u64>) {
        let known = "{msg} {bytes} of {total_bytes} [{bar:30}] {eta}";
        self.start(label, "bytes", bytes, known, "{spinner} {msg} {bytes}");
    }

    /// Starts a step called `label` over `count` `things`, if the number is known.
    pub fn start_count(&self, label: &str, things: &str, count: Option<u64>) {
        let known = "{msg} {human_pos} of {human_len} {prefix} [{bar:30}] {eta}";
        self.start(label, things, count, known, "{spinner} {msg} {human_pos} {prefix}");
    }

    /// Shows that `done` bytes or things are done.
    pub fn reached(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Removes the display.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn start(&self, label: &str, things: &str, length: Option<u64>, known: &str, unknown: &str) {
        let template = if length.is_some() { known } else { unknown };
        let style = ProgressStyle::with_template(template).expect("the templates are fixed");
        self.bar.set_style(style);
        self.bar.set_prefix(things.to_owned());
        self.bar.set_message(label.to_owned());
        match length {
            Some(length) => self.bar.set_length(length),
            None => {
                self.bar.unset_length();
                if !self.bar.is_hidden() {
                    // With a thread of its own.
                    self.bar.enable_steady_tick(Duration::from_millis(200));
                }
            }
        }
        // Last, because this draws the line.
        self.bar.reset();
    }
}

/// Columns of the terminal at standard output; `None` if it is not a terminal.
#[must_use]
pub fn terminal_width() -> Option<usize> {
    console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_step_can_be_shown() {
        let progress = Progress::hidden();
        progress.start_bytes("reading", Some(10));
        progress.reached(10);
        progress.start_bytes("reading", None);
        progress.start_count("replaying:", "requests", Some(5));
        progress.reached(3);
        assert_eq!(progress.bar.position(), 3);
        progress.start_count("replaying:", "requests", None);
        assert_eq!(progress.bar.position(), 0);
        progress.clear();
        assert!(progress.bar.is_finished());
    }
}
