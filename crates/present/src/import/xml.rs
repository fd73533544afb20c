//! The leaf elements of an XML file as settings.

use roxmltree::{Document, Node};

use super::error::{ImportError, Result};
use super::mqsim;
use super::settings::{Setting, Settings};

/// Parses a file.
pub fn parse(text: &str) -> Result<Document<'_>> {
    Document::parse(text).map_err(|error| {
        let position = error.pos();
        // The text of the error ends with the position.
        let what = error.to_string();
        let what = what.split(" at ").next().unwrap_or_default();
        ImportError::Line {
            line: position.row as usize,
            what: format!("the XML is damaged: {what}"),
        }
    })
}

/// The settings of MQSim's description of a drive.
pub fn settings(document: &Document<'_>) -> Settings {
    Settings::new("MQSim", mqsim::WITHOUT_COUNTERPART, leaves(document.root_element()))
}

/// The elements below `node` that have no elements in them.
pub fn leaves(node: Node<'_, '_>) -> Vec<Setting> {
    let is_leaf =
        |node: &Node<'_, '_>| node.is_element() && !node.children().any(|child| child.is_element());
    let leaf = |leaf: Node<'_, '_>| Setting {
        name: leaf.tag_name().name().to_owned(),
        value: leaf.text().unwrap_or_default().trim().to_owned(),
        line: leaf.document().text_pos_at(leaf.range().start).row as usize,
    };
    node.descendants().filter(is_leaf).map(leaf).collect()
}
