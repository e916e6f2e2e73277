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
//! * [`Report`]: whether everything is as it should be, as findings in sections
//! * [`Status`]: how the installation is, at one look
//! * [`LogRequest`]: logs of liqo's pods, merged
//! * [`Bundle`]: what a bug report needs, without secrets

pub mod age;
mod auth;
mod bundle;
mod check;
mod facts;
mod installation;
mod logs;
mod peer;
mod pod;
mod redact;
mod status;
mod version;
mod webhook;

pub use bundle::{Bundle, BundleError, Entry, Manifest, Problem};
pub use check::{Report, Section, before_installing, unreachable};
pub use facts::Server;
pub use installation::{Installation, MANAGER, Unread};
pub use liqo_install::finding::{Finding, Outcome};
pub use logs::{Line, LogError, LogRequest, Remark, Sink, Source, Told};
pub use peer::PeerView;
pub use status::{ClusterIdentity, ConditionView, Leader, LocalNetwork, PodStatus, Status, StatusVersions};
pub use version::{Build, ClusterVersions, Versions};
