//! MQSim's workloads, `workload.xml`, as fio jobs.
//!
//! MQSim simulates each scenario on a drive of its own; its flows run at the same time, each in its
//! own part of the addresses. Flows that replay a trace become the command that reports on it.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

use super::Imported;
use super::error::{ImportError, Result};
use super::mqsim_flow::{Flow, WITHOUT_COUNTERPART};
use super::settings::{self, LeftOut, Settings, comment};
use super::xml;

/// The elements of flows.
const SYNTHETIC: &str = "IO_Flow_Parameter_Set_Synthetic";
const TRACE_BASED: &str = "IO_Flow_Parameter_Set_Trace_Based";

/// Converts the scenario `only`, or all scenarios, one after another. The names are those of the
/// workload and of the job file.
pub fn convert(
    document: &Document<'_>,
    names: (&str, &str),
    only: Option<usize>,
) -> Result<Imported> {
    let is_scenario = |node: &Node<'_, '_>| node.has_tag_name("IO_Scenario");
    let scenarios: Vec<_> = document.descendants().filter(is_scenario).collect();
    if scenarios.is_empty() {
        let line = document_line(&document.root_element());
        return Err(ImportError::Line { line, what: "there is no <IO_Scenario>".into() });
    }
    if let Some(asked) = only.filter(|&asked| asked == 0 || asked > scenarios.len()) {
        return Err(ImportError::Scenario { asked, known: scenarios.len() });
    }
    let wanted = (1..).zip(&scenarios).filter(|(number, _)| only.is_none_or(|one| one == *number));
    let mut jobs = Jobs::default();
    for (number, scenario) in wanted {
        jobs.scenario(number, scenario)?;
    }
    Ok(jobs.imported(names, only, scenarios.len()))
}

/// A job file in the making.
#[derive(Default)]
struct Jobs {
    text: String,
    synthetic: usize,
    traces: usize,
    approximations: usize,
    used: usize,
    left_out: Vec<LeftOut>,
    /// The largest share of the drive that holds data before the run, in percent.
    occupancy: u32,
}

impl Jobs {
    fn scenario(&mut self, number: usize, scenario: &Node<'_, '_>) -> Result<()> {
        let mut flows = Vec::new();
        for node in scenario.children().filter(Node::is_element) {
            let is_trace = match node.tag_name().name() {
                SYNTHETIC => false,
                TRACE_BASED => true,
                other => {
                    let line = document_line(&node);
                    let what =
                        format!("<{other}> is no flow; known are {SYNTHETIC}, {TRACE_BASED}");
                    return Err(ImportError::Line { line, what });
                }
            };
            let settings = Settings::new("MQSim", WITHOUT_COUNTERPART, xml::leaves(node));
            flows.push(Flow::read(settings, is_trace)?);
        }
        let names: Vec<_> = flows.iter().map(|flow| flow.ids().clone()).collect();
        if let Some(other) = names.iter().find(|ids| **ids != names[0]) {
            // The first differs from one of the others, and each of these from the first or not.
            flows.iter_mut().enumerate().for_each(|(at, flow)| {
                flow.compare(if at == 0 { other } else { &names[0] });
            });
        }
        self.text.push_str(&format!("\n# Scenario {number}\n"));
        let mut first = true;
        for (at, (from, to)) in parts(&flows)?.into_iter().enumerate() {
            let flow = &mut flows[at];
            self.occupancy = self.occupancy.max(flow.occupancy);
            let name = format!("scenario{number}-flow{}", at + 1);
            let written = if flow.is_trace {
                self.traces += 1;
                flow.report(&name)?
            } else {
                self.synthetic += 1;
                let starts = std::mem::take(&mut first);
                flow.job(&name, (from, to), starts && self.synthetic > 1)?
            };
            self.text.push_str(&written);
            self.approximations += flow.notes.len();
            self.used += flow.settings.used();
            self.left_out.extend(flow.settings.left_out());
        }
        Ok(())
    }

    /// The lines before the jobs.
    fn head((name, jobs): (&str, &str), state: &str, several: bool) -> String {
        let mut text = comment(
            &format!(
                "Jobs of the MQSim workload {name}, converted by `prism device import`. DRIVE.toml \
                 is the converted ssdconfig.xml:"
            ),
            "# ",
        );
        text.push_str(&format!("#   prism sim {jobs} --device DRIVE.toml{state}\n"));
        if several {
            let note = "MQSim simulates each scenario on a new drive. Here they follow each other \
                        on one drive; `prism device import --scenario N` writes one alone.";
            text.push_str(&comment(note, "# "));
        }
        text.push_str("\n[global]\nioengine=libaio\ndirect=1\n");
        text
    }

    fn imported(self, names: (&str, &str), only: Option<usize>, scenarios: usize) -> Imported {
        let state = match self.occupancy {
            0 => String::new(),
            percent => format!(" --state filled:{}", f64::from(percent) / 100.0),
        };
        let mut text = String::new();
        if self.synthetic == 0 {
            let note = format!(
                "The flows of the MQSim workload {} replay traces, so there are no jobs. The \
                 commands take DRIVE.toml, the converted ssdconfig.xml.",
                names.0
            );
            text.push_str(&comment(&note, "# "));
        } else {
            text.push_str(&Self::head(names, &state, only.is_none() && scenarios > 1));
        }
        text.push_str(&self.text);
        text.push_str(&settings::listing(&self.left_out));
        let summary = format!(
            "flows of an MQSim workload: {} synthetic (jobs), {} with a trace (commands); {} \
             settings used, {} approximations, {} settings left out (listed at the \
             end of the job file)",
            self.synthetic,
            self.traces,
            self.used,
            self.approximations,
            self.left_out.len(),
        );
        Imported {
            text,
            summary,
            left_out: self.left_out.len(),
            approximations: self.approximations,
        }
    }
}

fn document_line(node: &Node<'_, '_>) -> usize {
    node.document().text_pos_at(node.range().start).row as usize
}

/// The part of the addresses that belongs to each flow: from and to, 1 being all. A plane gives
/// equal shares to the flows that may use it.
fn parts(flows: &[Flow]) -> Result<Vec<(f64, f64)>> {
    let mut users: BTreeMap<[u32; 4], u32> = BTreeMap::new();
    for flow in flows {
        for plane in flow.planes() {
            *users.entry(plane).or_default() += 1;
        }
    }
    let weight =
        |flow: &Flow| flow.planes().map(|plane| 1.0 / f64::from(users[&plane])).sum::<f64>();
    let weights: Vec<f64> = flows.iter().map(weight).collect();
    let all: f64 = weights.iter().sum();
    let mut before = 0.0;
    let part = |weight: &f64| {
        let from = before;
        before += weight / all;
        (from, before)
    };
    Ok(weights.iter().map(part).collect())
}
