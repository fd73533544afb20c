//! Verdicts as aligned lines: first the grade, then the score, the rule and the reason.

use super::text::{display_width, pad_left, pad_right, shorten, wrap};
use super::{Screen, Style};
use crate::verdict::{Grade, Verdict};

/// With less width than this, a sentence goes below its rule instead of next to it.
const SENTENCE_MIN: usize = 28;
/// The width of a score such as `0.25`.
const SCORE: usize = 4;

pub(super) fn render(screen: &mut Screen, verdicts: &[Verdict]) {
    let style = screen.style;
    let word = Grade::ALL.iter().map(|grade| grade.name().len()).max().unwrap_or(0);
    let names: Vec<String> = verdicts.iter().map(|verdict| screen.clean(&verdict.name)).collect();
    let widest = names.iter().map(|name| display_width(name)).max().unwrap_or(0);
    let name = widest.min(screen.width / 3);
    let before = 2 + word + 2 + SCORE + 2;
    let remaining = screen.width.saturating_sub(before + name + 2);
    let indent = if remaining < SENTENCE_MIN { before } else { before + name + 2 };
    for (verdict, text) in verdicts.iter().zip(&names) {
        let grade = paint(style, verdict.grade, &pad_right(verdict.grade.name(), word));
        let score = pad_left(&verdict.score_text(style.missing()), SCORE);
        let rule = pad_right(&shorten(text, name, style.unicode), name);
        let head = format!("  {grade}  {score}  {}", style.bold(&rule));
        let sentence = screen.clean(&verdict.sentence);
        let mut lines = wrap(&sentence, screen.width - indent).into_iter();
        let first = if indent == before { None } else { lines.next() };
        screen.line(&format!("{head}  {}", first.unwrap_or_default()));
        for line in lines {
            screen.line(&format!("{}{line}", " ".repeat(indent)));
        }
    }
}

/// Colours are used in addition to the words, never instead of them.
pub(super) fn paint(style: Style, grade: Grade, text: &str) -> String {
    let code = match grade {
        Grade::Kept => "32",
        Grade::Strained => "33",
        Grade::Broken => "1;31",
        Grade::Unknown => "2",
    };
    style.paint(code, text)
}
