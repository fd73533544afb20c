//! Matrix Market and METIS: formats with a header and vertices from 1 on.

use borsh::{BorshDeserialize, BorshSerialize};

use super::fields::{Fields, is_comment, lines, shown};
use super::{Parse, Parsed, ReadOptions};
use crate::ingest::{Edge, VERTICES_MAX};

/// The state of a reader of Matrix Market. Source: math.nist.gov/MatrixMarket/formats.html.
#[derive(Clone, Debug, Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct State {
    banner: Option<Banner>,
    /// Rows and columns.
    size: Option<u64>,
    entries: u64,
    seen: u64,
}

#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
struct Banner {
    pattern: bool,
    symmetric: bool,
    /// The sign of the mirrored entry.
    mirror: f64,
}

impl State {
    pub(crate) fn lines(&mut self, bytes: &[u8], options: &ReadOptions) -> Parse<Parsed> {
        let mut parsed = Parsed::default();
        for (number, line) in lines(bytes) {
            let mut fields = Fields::new(number, line);
            let Some(banner) = self.banner else {
                self.banner = Some(banner(&mut fields, options.weighted)?);
                continue;
            };
            if is_comment(line) {
                continue;
            }
            let Some(size) = self.size else {
                let (rows, columns) = (fields.id()?, fields.id()?);
                self.entries = fields.id()?;
                if rows != columns {
                    return fields.wrong(format!(
                        "a matrix of {rows} rows and {columns} columns is no graph; it has to be \
                         square"
                    ));
                }
                self.size = Some(rows);
                parsed.up_to = vertices(&fields, rows)?;
                continue;
            };
            let (source, target) = (fields.id()?, fields.id()?);
            let inside = 1..=size;
            if !inside.contains(&source) || !inside.contains(&target) {
                return fields.wrong(format!("rows and columns are 1 to {size}"));
            }
            self.seen += 1;
            if self.seen > self.entries {
                return fields.wrong(format!("the header promises {} entries", self.entries));
            }
            let weight = if banner.pattern || !options.weighted { 1.0 } else { fields.weight()? };
            parsed.edges.push(Edge { source, target, weight });
            if banner.symmetric && options.directed && source != target {
                let weight = weight * banner.mirror;
                parsed.edges.push(Edge { source: target, target: source, weight });
            }
        }
        Ok(parsed)
    }

    pub(crate) fn missing(&self) -> Option<String> {
        match self.size {
            None => Some("the file ends before the size of the matrix".into()),
            Some(_) if self.seen < self.entries => Some(format!(
                "the file ends after {} of {} entries; it is cut off",
                self.seen, self.entries
            )),
            Some(_) => None,
        }
    }
}

/// A number of vertices that a header promises, if a graph can have as many.
fn vertices(fields: &Fields<'_>, count: u64) -> Parse<u64> {
    if count > VERTICES_MAX {
        return fields.wrong(format!("a graph has at most {VERTICES_MAX} vertices"));
    }
    Ok(count)
}

fn banner(fields: &mut Fields<'_>, weighted: bool) -> Parse<Banner> {
    let words: Vec<String> = (0..5).map(|_| shown(fields.next()).to_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["%%matrixmarket", "matrix", "coordinate", field, symmetry] = words[..] else {
        return fields.wrong(
            "the first line has to be \"%%MatrixMarket matrix coordinate\", then pattern, real or \
             integer, then general or symmetric",
        );
    };
    let pattern = match field {
        "pattern" => true,
        "real" | "integer" | "double" => false,
        _ => return fields.wrong(format!("{field} entries are no weights of edges")),
    };
    if pattern && weighted {
        return fields.wrong("the entries have no values; leave --weighted away");
    }
    let (symmetric, mirror) = match symmetry {
        "general" => (false, 1.0),
        "symmetric" => (true, 1.0),
        "skew-symmetric" => (true, -1.0),
        _ => return fields.wrong(format!("{symmetry} matrices cannot be read")),
    };
    Ok(Banner { pattern, symmetric, mirror })
}

/// The state of a reader of METIS. Source: METIS 5.1 manual, section 4.1.1.
#[derive(Clone, Debug, Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct MetisState {
    header: Option<Metis>,
    /// Vertices of which the line was read.
    lines: u64,
    /// Neighbours that were read.
    seen: u64,
}

#[derive(Clone, Copy, Debug, BorshSerialize, BorshDeserialize)]
struct Metis {
    vertices: u64,
    edges: u64,
    edge_weights: bool,
    /// Numbers before the neighbours: the size and the weights of a vertex.
    before: u64,
}

impl MetisState {
    pub(crate) fn lines(&mut self, bytes: &[u8], weighted: bool) -> Parse<Parsed> {
        let mut parsed = Parsed::default();
        for (number, line) in lines(bytes) {
            // Lines of vertices without neighbours are empty.
            if line.first() == Some(&b'%') {
                continue;
            }
            let mut fields = Fields::new(number, line);
            let Some(header) = self.header else {
                let header = metis_header(&mut fields, weighted)?;
                parsed.up_to = vertices(&fields, header.vertices)?;
                self.header = Some(header);
                continue;
            };
            if self.lines == header.vertices && fields.is_empty() {
                continue;
            }
            self.lines += 1;
            if self.lines > header.vertices {
                return fields.wrong(format!("the header promises {} vertices", header.vertices));
            }
            for _ in 0..header.before {
                if fields.next().is_empty() {
                    let before = header.before;
                    return fields.wrong(format!("{before} weights of the vertex come first"));
                }
            }
            while !fields.is_empty() {
                let target = fields.id()?;
                if target == 0 || target > header.vertices {
                    return fields.wrong(format!("vertices are 1 to {}", header.vertices));
                }
                let weight = if header.edge_weights { fields.weight()? } else { 1.0 };
                self.seen += 1;
                // Each edge is in the lists of both of its ends.
                if target >= self.lines {
                    parsed.edges.push(Edge { source: self.lines, target, weight });
                }
            }
        }
        Ok(parsed)
    }

    pub(crate) fn missing(&self) -> Option<String> {
        let Some(header) = self.header else {
            return Some("the file ends before the header".into());
        };
        if self.lines < header.vertices {
            let (lines, vertices) = (self.lines, header.vertices);
            return Some(format!("the file ends after {lines} of {vertices} vertices"));
        }
        (self.seen != 2 * header.edges).then(|| {
            format!(
                "the lines have {} neighbours, and the header promises twice {} edges",
                self.seen, header.edges
            )
        })
    }
}

fn metis_header(fields: &mut Fields<'_>, weighted: bool) -> Parse<Metis> {
    let (vertices, edges) = (fields.id()?, fields.id()?);
    let kinds = if fields.is_empty() { 0 } else { fields.id()? };
    if kinds > 111 || kinds % 10 > 1 || kinds / 10 % 10 > 1 {
        return fields.wrong(format!("{kinds} is no kind of weights; 0 to 111 in binary digits"));
    }
    let (edge_weights, vertex_weights) = (kinds % 10 == 1, kinds / 10 % 10 == 1);
    let count = if vertex_weights && !fields.is_empty() { fields.id()? } else { 1 };
    if weighted && !edge_weights {
        return fields.wrong("edges have no weights; leave --weighted away");
    }
    let before = if vertex_weights { count } else { 0 } + kinds / 100;
    Ok(Metis { vertices, edges, edge_weights, before })
}
