//! The progress of a long step: on standard error, only if that is a terminal, or where the caller
//! shows it.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows the progress of steps in place of standard error. A call may unwind, which ends the step.
pub trait Display: Send + Sync {
    /// A step called `label` begins, over `total` `things`, if the number is known.
    fn begin(&self, label: &str, things: &str, total: Option<u64>);

    /// This many are done.
    fn reached(&self, done: u64);

    /// The step is over.
    fn end(&self);
}

/// A line that is redrawn; nothing if standard error is not a terminal.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    display: Option<Arc<dyn Display>>,
    on_stderr: bool,
}

/// Redraws per second: few, so that they cost no time.
const REDRAWS_PER_SECOND: u8 = 5;

impl Progress {
    /// No display, whatever standard error is.
    #[must_use]
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), display: None, on_stderr: false }
    }

    /// Everything is shown by `display`.
    #[must_use]
    pub fn shown_by(display: Arc<dyn Display>) -> Self {
        Self { bar: ProgressBar::hidden(), display: Some(display), on_stderr: false }
    }

    /// A display on standard error, if that is a terminal.
    #[must_use]
    pub fn on_stderr() -> Self {
        // The target hides itself if standard error is not a terminal.
        let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar, display: None, on_stderr: true }
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
        if let Some(display) = &self.display {
            display.reached(done);
        }
    }

    /// Writes a line above the display, also if there is none: on standard error, unless progress
    /// is hidden or shown elsewhere.
    pub fn note(&self, line: &str) {
        if self.on_stderr {
            // The display is not essential, and neither is what it says.
            let _ = self.bar.suspend(|| console::Term::stderr().write_line(line));
        }
    }

    /// Removes the display.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
        if let Some(display) = &self.display {
            display.end();
        }
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
        if let Some(display) = &self.display {
            display.begin(label, things, length);
        }
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Progress").field("bar", &self.bar).finish_non_exhaustive()
    }
}

/// Columns of the terminal at standard output; `None` if it is not a terminal.
#[must_use]
pub fn terminal_width() -> Option<usize> {
    console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

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

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl Log {
        fn add(&self, line: String) {
            self.0.lock().unwrap().push(line);
        }
    }

    impl Display for Log {
        fn begin(&self, label: &str, things: &str, total: Option<u64>) {
            self.add(format!("{label} {things} {total:?}"));
        }

        fn reached(&self, done: u64) {
            self.add(format!("{done}"));
        }

        fn end(&self) {
            self.add("end".into());
        }
    }

    #[test]
    fn a_display_of_the_caller_is_called() {
        let log = Arc::new(Log::default());
        let progress = Progress::shown_by(log.clone());
        progress.start_bytes("reading", Some(10));
        progress.reached(10);
        progress.start_count("replaying:", "requests", None);
        progress.clear();
        let lines = log.0.lock().unwrap().clone();
        assert_eq!(lines, ["reading bytes Some(10)", "10", "replaying: requests None", "end"]);
    }
}
