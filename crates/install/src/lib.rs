//! Putting liqo into a cluster, and taking it out again.

mod apply;
mod changes;
pub mod detect;
mod error;
mod existing;
pub mod facts;
pub mod finding;
mod install;
mod inventory;
mod kinds;
mod lock;
pub mod names;
mod notes;
mod objects;
mod permissions;
mod preflight;
mod prepare;
mod progress;
mod rollout;
mod target;
mod trouble;
mod uninstall;
pub mod values;

pub use changes::{Action, Planned};
pub use error::InstallError;
pub use install::{Done, Options, install};
pub use objects::Id;
pub use prepare::{Outlook, Prepared, Request, look, prepare};
pub use progress::{Progress, Silent};
pub use target::Target;
pub use uninstall::{Removal, Survey, survey, uninstall};
