//! Assigns colours to names: the same colour in every chart of a page, unless another name of
//! the chart already has it.

/// How many colours can be distinguished. Names beyond that are grey.
pub const COLOURS: usize = 8;

/// The names seen so far; the index of a name is the colour it prefers.
#[derive(Default)]
pub struct Palette {
    names: Vec<String>,
}

impl Palette {
    /// A colour for each of the names of one chart; [`COLOURS`] is grey.
    pub fn assign<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> Vec<usize> {
        let names: Vec<&str> = names.collect();
        let mut free = [true; COLOURS];
        let mut assigned = vec![COLOURS; names.len()];
        // Names that already have a colour choose first.
        for (slot, name) in assigned.iter_mut().zip(&names) {
            let known = self.names.iter().position(|known| known == name);
            if let Some(colour) = known.map(|place| place % COLOURS)
                && std::mem::take(&mut free[colour])
            {
                *slot = colour;
            }
        }
        for (slot, name) in assigned.iter_mut().zip(&names) {
            if *slot == COLOURS
                && let Some(colour) = free.iter().position(|free| *free)
            {
                free[colour] = false;
                *slot = colour;
                self.remember(name, colour);
            }
        }
        assigned
    }

    /// Keeps `colour` for `name`, unless it already prefers another one.
    fn remember(&mut self, name: &str, colour: usize) {
        if self.names.iter().any(|known| known == name) {
            return;
        }
        // Empty names in between keep the rule that the index gives the colour.
        while self.names.len() % COLOURS != colour {
            self.names.push(String::new());
        }
        self.names.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_colour_and_no_chart_has_it_twice() {
        let mut palette = Palette::default();
        assert_eq!(palette.assign(["read", "write"].into_iter()), [0, 1]);
        assert_eq!(palette.assign(["gc", "write"].into_iter()), [0, 1]);
        assert_eq!(palette.assign(["write", "read", "gc"].into_iter()), [1, 0, 2]);
        let many: Vec<String> = (0..12).map(|i| format!("p{i}")).collect();
        let colours = palette.assign(many.iter().map(String::as_str));
        let distinct: std::collections::BTreeSet<_> = colours.iter().take(COLOURS).collect();
        assert_eq!(distinct.len(), COLOURS);
        assert_eq!(colours[8..], [COLOURS; 4]);
    }
}
