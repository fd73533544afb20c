//! Options of a call, which the package passes as one dictionary, and their names in messages.

use std::fmt::Display;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;

use crate::error::Failure;

/// Options of a call. An exception names the option that cannot be used, and not the type of Rust
/// that has it as a field.
pub struct Arguments<T>(pub T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Arguments<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(options: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        T::extract(options).map(Self).map_err(|error| named(&options, error))
    }
}

/// The value of the argument `name`, whose text `parse` reads.
///
/// # Errors
/// Its error, with the name of the argument.
pub fn parsed<T, E: Display>(
    name: &str,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, Failure> {
    parse(text).map_err(|error| Failure::argument(name, error))
}

/// As [`parsed`], of an argument that need not be given.
///
/// # Errors
/// As [`parsed`].
pub fn parsed_if_any<T, E: Display>(
    name: &str,
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<T>, Failure> {
    text.map(|text| parsed(name, text, parse)).transpose()
}

/// The value called `name` of `values`.
///
/// # Errors
/// If there is none.
pub fn chosen<T: Copy>(argument: &str, name: &str, values: &[(&str, T)]) -> Result<T, Failure> {
    let found = values.iter().find(|(other, _)| *other == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
        Failure::argument(argument, format!("{name:?} is unknown; known are {}", names.join(", ")))
    })
}

/// The exception for what `error` says of one of the options.
fn named(options: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = options.py();
    let text = error.value(py).to_string();
    let field =
        text.strip_prefix("failed to extract field ").and_then(|field| field.split_once('.'));
    let (Some((_, name)), Some(cause)) = (field, error.cause(py)) else { return error };
    let error: PyErr = if cause.is_instance_of::<PyOverflowError>(py) {
        let value = options.get_item(name).and_then(|value| value.str()?.extract::<String>());
        // Python refuses to write numbers of thousands of digits.
        let value = value.unwrap_or_else(|_| "the number".to_owned());
        Failure::argument(name, format!("{value} is out of range")).into()
    } else if cause.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(format!("{name}: {}", cause.value(py)))
    } else {
        // It is of the code that converts the value, or of a signal.
        return cause;
    };
    error.set_cause(py, Some(cause));
    error
}

/// The message of a command with arguments in place of its options: `--run-memory` becomes
/// `run_memory=`, and one of `flags` `restart=True`; `renamed` has those options whose arguments
/// have other names.
pub fn in_arguments(message: &str, flags: &[&str], renamed: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = message;
    while let Some(at) = rest.find("--") {
        let (before, option) = (&rest[..at], &rest[at + 2..]);
        let is_of_option = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        let (option, after) =
            option.split_at(option.find(|letter| !is_of_option(letter)).unwrap_or(option.len()));
        text.push_str(before);
        rest = after;
        if option.is_empty() || before.ends_with(|letter: char| letter.is_alphanumeric()) {
            // Of a name with hyphens.
            text.push_str("--");
            text.push_str(option);
            continue;
        }
        let other = renamed.iter().find(|(name, _)| *name == option);
        text.push_str(&other.map_or_else(|| option.replace('-', "_"), |(_, name)| (*name).into()));
        if flags.contains(&option) {
            text.push_str("=True");
        } else if !after.starts_with(':') {
            text.push('=');
            // A value, which no message begins with a small letter unless a sign of equality is
            // before it.
            let value = after.strip_prefix(['=', ' ']).unwrap_or(after);
            let is_value = after.starts_with('=')
                || value.starts_with(|first: char| first.is_uppercase() || first.is_numeric());
            rest = if is_value { value } else { after };
        }
    }
    text + rest
}
