//! Pages of `docs` whose tables a program writes.

/// Checks that the tables of a page are those of the program: `renewed` is a copy of `page` into
/// which it has written its tables, at a smaller scale. They have the same columns, and every row
/// of the copy is in the page. The page has no more rows than that, except in tables for whose
/// name `has_more` is true.
///
/// # Panics
/// If they differ.
pub fn assert_page(page: &str, renewed: &str, has_more: impl Fn(&str) -> bool) {
    let (page, renewed) = (generated(page), generated(renewed));
    assert_eq!(page.len(), renewed.len());
    for (page, renewed) in page.iter().zip(&renewed) {
        let (name, ours) = (page[0], page[1]);
        assert_eq!(ours, renewed[1], "{name}: the columns have changed; run `make pages`");
        let rows = |table: &[&str]| table[3..].iter().map(|row| key(name, row)).collect::<Vec<_>>();
        let (page, renewed) = (rows(page), rows(renewed));
        let missing = renewed.iter().find(|row| !page.contains(row));
        assert_eq!(missing, None, "{name}: the page lacks a row; run `make pages`");
        assert!(page.len() == renewed.len() || has_more(name), "{name}: surplus rows");
    }
}

/// The comments that begin tables of a page, each with the lines of its table.
fn generated(page: &str) -> Vec<Vec<&str>> {
    let parts = page.split("<!-- table: ").skip(1);
    parts
        .map(|part| {
            let table = part.split("<!-- end -->").next().unwrap();
            table.lines().filter(|line| !line.is_empty()).collect()
        })
        .collect()
}

/// The cells of a row that do not depend on the scale: in comparisons what is compared, its place
/// and the published value, in other tables the name of the row.
fn key(table: &str, row: &str) -> Vec<String> {
    let compares = table.starts_with("Compared, 1") || table.starts_with("Published and ours, 1");
    let cells = row.split('|').skip(1).take(if compares { 3 } else { 1 });
    cells.map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<!-- table: T, 1 -->\n\n| a | b |\n|---|---|\n| x | 1 |\n\n<!-- end -->\n";

    #[test]
    fn values_may_differ() {
        assert_page(PAGE, &PAGE.replace("| 1 |", "| 2 |"), |_| false);
        let more = PAGE.replace("| x | 1 |", "| x | 1 |\n| y | 2 |");
        assert_page(&more, PAGE, |name| name.starts_with("T, 1"));
    }

    #[test]
    #[should_panic(expected = "lacks a row")]
    fn names_may_not() {
        assert_page(PAGE, &PAGE.replace("| x |", "| y |"), |_| true);
    }

    #[test]
    #[should_panic(expected = "columns have changed")]
    fn columns_may_not() {
        assert_page(PAGE, &PAGE.replace("| b |", "| c |"), |_| true);
    }
}
