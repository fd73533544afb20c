//! Words that a storage engineer who has never seen Prism would not understand are not written,
//! neither in code and documents nor in what commands print. The table of them says what to
//! write instead.
//!
//! A phrase is found across the end of a line too: the marks of comments and the blanks around
//! the end of a line count as one blank.

mod words;

use regex::{Regex, RegexBuilder, RegexSetBuilder};

use self::words::{EXCEPTIONS, REFUSED, Word};
use crate::source::{Source, fail, files};

/// Which files are read, by how their names end: code, documents, texts of commands, pictures.
const ENDINGS: [&str; 15] = [
    ".rs", ".md", ".toml", ".c", ".h", ".py", ".sh", ".svg", ".js", ".css", ".sql", ".fio", ".3",
    "Makefile", ".ci/run",
];

/// A text with each end of a line, and the marks of comments around it, made one blank.
struct Prose {
    text: String,
    /// Where each line starts in `text`.
    starts: Vec<usize>,
}

impl Prose {
    fn of(text: &str) -> Self {
        let mut prose = Self { text: String::with_capacity(text.len()), starts: Vec::new() };
        for line in text.lines() {
            prose.starts.push(prose.text.len());
            let line = line.trim_start();
            let marks = ["///", "//!", "//", "/*", "*/", "* ", "# ", "> "];
            let mark = marks.iter().find_map(|mark| line.strip_prefix(mark));
            // A string of Rust may go on after a backslash.
            prose.text.push_str(mark.unwrap_or(line).trim_end_matches('\\').trim());
            prose.text.push(' ');
        }
        prose
    }

    /// The number of the line, from 1, on which the byte `at` lies.
    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }
}

/// The pattern of a word. Case does not matter unless the pattern says so.
fn pattern(word: &Word) -> Regex {
    let regex = RegexBuilder::new(word.found).case_insensitive(true).build();
    regex.unwrap_or_else(|error| panic!("{}: {error}", word.found))
}

/// Every place at which `files` have one of `words`.
fn places(files: &[Source], words: &[Word]) -> Vec<String> {
    let patterns: Vec<(Regex, &Word)> = words.iter().map(|word| (pattern(word), word)).collect();
    // One pass finds the few words that a file has; a pass for each word would take half a minute.
    let any = RegexSetBuilder::new(words.iter().map(|word| word.found))
        .case_insensitive(true)
        .dfa_size_limit(64 << 20)
        .build()
        .expect("each of them is a pattern");
    let mut places = Vec::new();
    for file in files {
        let name = &file.name;
        let prose = Prose::of(&file.text);
        let (in_name, in_text) = (any.matches(name), any.matches(&prose.text));
        for (at, (pattern, word)) in patterns.iter().enumerate() {
            if !in_name.matched(at) && !in_text.matched(at) {
                continue;
            }
            if EXCEPTIONS.iter().any(|known| known.covers(name, word)) {
                continue;
            }
            for found in pattern.find_iter(name) {
                places.push(format!("{name}: {}", word.message(found.as_str())));
            }
            for found in pattern.find_iter(&prose.text) {
                let line = prose.line(found.start());
                places.push(format!("{name}:{line}: {}", word.message(found.as_str())));
            }
        }
    }
    places
}

/// The files that are read; the table itself and its test have every word.
fn read_files() -> Vec<Source> {
    let here = "xtask/tests/tidy/vocabulary/";
    let wanted =
        |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending)) && !name.starts_with(here);
    let files = files("", wanted);
    assert!(files.len() > 100, "the walk lost its way: {} files", files.len());
    files
}

#[test]
fn refused_words_are_not_written() {
    fail(&places(&read_files(), REFUSED));
}

#[test]
fn each_word_is_found_and_no_other() {
    for word in REFUSED {
        let pattern = pattern(word);
        assert!(pattern.is_match(word.example), "{} is not in {:?}", word.found, word.example);
        assert!(!pattern.is_match(word.write), "{} is in {:?}", word.found, word.write);
    }
    let file = |text: &str| [Source { name: "a.rs".to_owned(), text: text.to_owned() }];
    let words = [Word { found: r"\bbad words\b", write: "good ones", example: "bad words" }];
    let check = |text: &str, lines: &[usize]| {
        let expected: Vec<String> = lines
            .iter()
            .map(|line| format!("a.rs:{line}: \"bad words\": write \"good ones\""))
            .collect();
        assert_eq!(places(&file(text), &words), expected, "{text}");
    };
    check("// some bad words\n", &[1]);
    check("a\n    /// Some bad\n    /// words, bad words.\n", &[2, 3]);
    check("let a = \"bad \\\n         words\";", &[1]);
    check("* bad\n  words\n", &[1]);
    check("badwords, bad-words, bad\n\nwords", &[]);
    let named = [Source { name: "bad words.md".to_owned(), text: String::new() }];
    assert_eq!(places(&named, &words).len(), 1);
}
