//! Looking at an installation: what runs, what is wrong, what a bug report needs.
//!
//! ```text
//!   Installation ──reads, each part on its own──▶ what was found, or why not ──pure──▶ what it means
//! ```
//!
//! Nothing here writes to the cluster, and a part that cannot be read (a right is missing, a kind is not installed)
//! never hides the others.
//!
//! * [`Versions`]: which build this is, and which ones the cluster runs

mod installation;
mod version;

pub use installation::{Installation, Unread};
pub use version::{Build, ClusterVersions, Versions};
