//! The results of `prism reproduce linkedin`, as a document and as JSON.

mod document;
mod tables;

use prism_experiments::Scale;
use prism_experiments::comparison::Comparison;
use prism_experiments::linkedin::{Results, changes, compare};
use prism_report::json::table;
use serde_json::{Value, json};

use super::{comparison_tables, scale_name};

pub use document::document;

/// The results.
pub struct LinkedIn {
    /// Seed of everything random.
    pub seed: u64,
    /// How much was simulated.
    pub scale: Scale,
    /// What was measured.
    pub found: Results,
    /// The article's numbers compared with ours.
    pub compared: Vec<Comparison>,
}

impl LinkedIn {
    /// The results, compared with the article.
    #[must_use]
    pub fn new(seed: u64, scale: Scale, found: Results) -> Self {
        let compared = compare(&found);
        Self { seed, scale, found, compared }
    }
}

/// The results as JSON.
#[must_use]
pub fn json(result: &LinkedIn) -> Value {
    let found = &result.found;
    json!({
        "id": "linkedin",
        "seed": result.seed,
        "scale": scale_name(result.scale),
        "compared": comparison_tables::json(&result.compared),
        "threads": table(&tables::threads(&found.threads)),
        "sizes": table(&tables::sizes(&found.sizes)),
        "threshold": table(&tables::threshold(&found.threshold)),
        "mechanisms": table(&tables::mechanisms(&found.slower)),
        "rates": table(&tables::rates(&found.rates)),
        "full": table(&tables::full(&found.full)),
        "updates": table(&tables::updates(&found.updates)),
        "users": table(&tables::users(&found.users)),
        "changes": table(&tables::changes(&changes(&found.updates))),
        "lifetimes": table(&tables::lives(&found.lives)),
    })
}
