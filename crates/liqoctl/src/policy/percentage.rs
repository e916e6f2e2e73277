//! How much the manager shares where no policy says so, as its Deployment has it.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Container;
use liqo_core::policy::Percent;

use crate::access::Connection;
use crate::peering::own;

/// The manager's flag, the variable that stands for it, and what it shares without both.
const FLAG: &str = "--resource-sharing-percentage";
const VARIABLE: &str = "LIQO_RESOURCE_SHARING_PERCENTAGE";
const DEFAULT: i64 = 50;

/// What is known of it.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Said(String),
    /// Nothing is said, so that the default applies.
    Nothing,
    /// It is said in a place where it is not looked for.
    Hidden,
}

/// The percentage; where it cannot be seen, what is assumed is told.
pub(super) async fn read(connection: &Connection) -> Result<Percent> {
    let manager = own::manager(connection).await?;
    let container = manager.and_then(|manager| manager.spec?.template.spec?.containers.into_iter().next());
    let found = container.as_ref().map_or(Found::Hidden, find);
    let said = match &found {
        Found::Said(text) => text.trim().parse().ok(),
        Found::Nothing => Some(DEFAULT),
        Found::Hidden => {
            eprintln!(
                "note: it cannot be seen how much the manager shares where no policy says so ({FLAG}, {VARIABLE}): {DEFAULT} % \
                 is assumed"
            );
            Some(DEFAULT)
        }
    };
    said.and_then(Percent::new).with_context(|| format!("the manager's {FLAG} makes no sense: {found:?}"))
}

/// Flags count before variables, and what comes later before what comes first.
fn find(manager: &Container) -> Found {
    let words = manager.args.as_deref().unwrap_or_default();
    let mut flags = words.iter().enumerate().filter_map(|(place, word)| match word.strip_prefix(FLAG)? {
        "" => words.get(place + 1).map(String::as_str),
        rest => rest.strip_prefix('='),
    });
    if let Some(said) = flags.next_back() {
        return Found::Said(said.to_owned());
    }
    let mut variables = manager.env.iter().flatten();
    if let Some(variable) = variables.rfind(|variable| variable.name == VARIABLE) {
        return variable.value.clone().map_or(Found::Hidden, Found::Said);
    }
    // All variables of a ConfigMap or Secret may be among them.
    if manager.env_from.as_ref().is_some_and(|all| !all.is_empty()) { Found::Hidden } else { Found::Nothing }
}

#[cfg(test)]
mod tests;
