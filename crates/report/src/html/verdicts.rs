//! Verdicts as rows: the grade as a mark and a word, never as a colour alone.

use super::Page;
use super::escape::escape;
use crate::verdict::{Grade, Verdict};

pub fn render(page: &mut Page, verdicts: &[Verdict]) {
    tally(page, verdicts);
    page.push("<ul class=\"verdicts\">\n");
    for verdict in verdicts {
        row(page, verdict);
    }
    page.push("</ul>\n");
}

/// How many verdicts there are of each grade.
fn tally(page: &mut Page, verdicts: &[Verdict]) {
    page.push("<p class=\"tally\">");
    for grade in Grade::ALL {
        let count = verdicts.iter().filter(|verdict| verdict.grade == grade).count();
        if count > 0 {
            let (word, icon) = (grade.name(), icon(grade));
            page.push(&format!("<span class=\"{word}\">{icon}{count} {word}</span> "));
        }
    }
    page.push("</p>\n");
}

fn row(page: &mut Page, verdict: &Verdict) {
    let grade = verdict.grade.name();
    page.push(&format!(
        "<li class=\"{grade}\">\n<p class=\"grade\">{}{grade}</p>\n<h3>{}</h3>\n{}\
         <p class=\"why\">{}</p>\n",
        icon(verdict.grade),
        escape(&verdict.name),
        score(verdict),
        escape(&verdict.sentence)
    ));
    if !verdict.details.is_empty() {
        page.push("<details><summary>What this rests on</summary>\n<dl>\n");
        for (name, value) in &verdict.details {
            let (name, value) = (escape(name), escape(value));
            page.push(&format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"));
        }
        page.push("</dl>\n</details>\n");
    }
    page.push("</li>\n");
}

/// The score as a bar with its number.
fn score(verdict: &Verdict) -> String {
    let Some(share) = verdict.share() else { return String::new() };
    let text = verdict.score_text("");
    format!(
        "<p class=\"score\"><span aria-hidden=\"true\"><i style=\"--part:{share:.4}\"></i></span>\
         <b>{text}</b><span class=\"heard\"> of 1</span></p>\n"
    )
}

/// Each grade has its own outline: a disc, a triangle, an octagon, a ring.
fn icon(grade: Grade) -> String {
    let (outline, sign) = match grade {
        Grade::Kept => ("M8 .5a7.5 7.5 0 1 0 0 15a7.5 7.5 0 1 0 0-15Z", "M4.5 8.2l2.4 2.4 4.6-5"),
        Grade::Strained => ("M8 1L15.5 14.5H.5Z", "M8 5.7v4.3M8 12.2v.1"),
        Grade::Broken => {
            ("M5 .5h6L15.5 5v6L11 15.5H5L.5 11V5Z", "M5.2 5.2l5.6 5.6M10.8 5.2l-5.6 5.6")
        }
        Grade::Unknown => (
            "M8 1a7 7 0 1 0 0 14a7 7 0 1 0 0-14Z",
            "M5.9 6.2a2.1 2.1 0 1 1 3 1.9c-.6.3-.9.7-.9 1.4M8 11.9v.1",
        ),
    };
    format!(
        "<svg viewBox=\"0 0 16 16\" aria-hidden=\"true\"><path class=\"outline\" d=\"{outline}\"/>\
         <path class=\"sign\" d=\"{sign}\"/></svg>"
    )
}
