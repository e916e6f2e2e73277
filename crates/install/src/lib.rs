//! Putting liqo into a cluster, and taking it out again.
//!
//! ```text
//!  facts ──▶ detect ──▶ values ──▶ chart ──▶ changes ──▶ preflight ──▶ install ──▶ rollout
//!  what the    what it   defaults,  objects   what the      findings:     apply,      wait, or say
//!  cluster     is, and   found,               server says   stop here     prune,      which pod
//!  says        where     given                would change  if any fails  note down   and why
//! ```
//!
//! Everything left of `install` only looks: [`look`] ends with the values, [`prepare()`] with the findings. [`install()`]
//! holds a Lease while it writes, one object at a time; each write may be done twice, so whatever stops it, the next
//! run goes on. [`survey()`] and [`uninstall()`] are the way back.
//!
//! What decides is pure and tested as tables ([`detect`], [`values`], the checks, the diagnosis, what is to be removed);
//! what reads and writes is thin. liqoctl's own notes are in a Secret, see `notes.rs`.

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
