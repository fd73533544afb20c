//! Columns that are found by the names in a header line.

use crate::fields::WRONG_FIELDS;
use crate::skips::SkipReason;

/// The most columns of a line: twice as many as any known format has.
const COLUMNS_MAX: usize = 64;

/// The positions of the `N` wanted columns.
#[derive(Clone, Debug)]
pub(super) struct Columns<const N: usize> {
    /// For each column of the line, the index of the wanted column, if it is one.
    wanted: Vec<Option<usize>>,
}

impl<const N: usize> Columns<N> {
    /// Finds the columns `names` in a `header` separated by commas. The first `needed` must
    /// exist.
    ///
    /// # Errors
    /// Which one is missing, and which columns the header has.
    pub fn find(header: &[u8], names: &[&str; N], needed: usize) -> Result<Self, String> {
        let header = String::from_utf8_lossy(header);
        let present: Vec<&str> = header.split(',').map(str::trim).collect();
        if present.len() > COLUMNS_MAX {
            return Err(format!("the header has more than {COLUMNS_MAX} columns"));
        }
        let missing = names[..needed].iter().find(|name| !present.contains(*name));
        if let Some(name) = missing {
            let has = present.join(", ");
            return Err(format!("the header has no column {name}, which is needed; it has: {has}"));
        }
        let place = |name: &&str| names.iter().position(|wanted| wanted == name);
        Ok(Self { wanted: present.iter().map(place).collect() })
    }

    /// The columns in the order of their names; empty if the header does not have the column.
    pub fn cut<'a>(&self, line: &'a [u8]) -> Result<[&'a [u8]; N], SkipReason> {
        let mut cells = line.split(|&byte| byte == b',');
        let mut found = [&line[..0]; N];
        for wanted in &self.wanted {
            let cell = cells.next().ok_or(WRONG_FIELDS)?;
            if let Some(place) = wanted {
                found[*place] = cell.trim_ascii();
            }
        }
        if cells.next().is_some() { Err(WRONG_FIELDS) } else { Ok(found) }
    }
}

/// Whether `line` names each of `names` as one of its columns.
pub(super) fn has_all(line: &[u8], names: &[&str]) -> bool {
    let has = |name: &&str| {
        line.split(|&byte| byte == b',').any(|cell| cell.trim_ascii() == name.as_bytes())
    };
    names.iter().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_where_the_header_says() {
        let names = ["size", "time", "note"];
        let columns = Columns::find(b"time, other,size", &names, 2).unwrap();
        assert_eq!(columns.cut(b"1,2, 3"), Ok([&b"3"[..], b"1", b""]));
        assert_eq!(columns.cut(b"1,2"), Err(WRONG_FIELDS));
        assert_eq!(columns.cut(b"1,2,3,4"), Err(WRONG_FIELDS));
        let missing = Columns::find(b"size,note", &names, 2).unwrap_err();
        assert_eq!(missing, "the header has no column time, which is needed; it has: size, note");
        assert!(Columns::find(&[b','; 100], &names, 0).is_err());
    }
}
