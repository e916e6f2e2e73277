//! What the room must be told.

use std::fmt;
use std::sync::Arc;

use liqo_kit::Clock;
use liqo_providers::nodes::Survey;
use tokio::sync::watch;

use crate::pods::volumes::VIRTUAL_CLASS;
use crate::policies::Policies;
use crate::translate::{Translate, Unchanged};

/// Writes under way at once, here and at each provider: what a busy API server answers in parallel.
const WRITES: usize = 32;

/// How volumes of the virtual storage class are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The virtual class, which users ask for.
    pub class: String,
    /// The class of volumes that are in this cluster; the cluster's default if there is none.
    pub real_class: Option<String>,
    /// The namespace of the claims of real classes.
    pub namespace: String,
}

impl Default for Storage {
    fn default() -> Self {
        Self { class: VIRTUAL_CLASS.to_owned(), real_class: None, namespace: "liqo-storage".to_owned() }
    }
}

/// What the room must be told.
#[derive(Clone)]
pub struct Settings {
    /// The pod that this is.
    pub pod: String,
    /// Writes under way at once, here and at each provider.
    pub writes: usize,
    /// Where liqo itself runs: of this namespace, nothing but what is needed to reach its Services is reflected.
    pub namespace: Option<Arc<str>>,
    /// Which objects of each kind are reflected.
    pub policies: Policies,
    /// How volumes of the virtual class are made; `None` if they are not.
    pub storage: Option<Storage>,
    /// How addresses of one side are seen from the other.
    pub translate: Arc<dyn Translate>,
    /// Where is told what is left behind the virtual nodes; the room that keeps them listens.
    pub survey: watch::Sender<Arc<Survey>>,
    /// Tells the time.
    pub clock: Clock,
}

impl Settings {
    /// The usual, for this pod.
    pub fn new(pod: impl Into<String>) -> Self {
        Self {
            pod: pod.into(),
            writes: WRITES,
            namespace: None,
            policies: Policies::default(),
            storage: Some(Storage::default()),
            translate: Arc::new(Unchanged),
            survey: watch::Sender::default(),
            clock: Clock::system(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("pod", &self.pod)
            .field("writes", &self.writes)
            .field("policies", &self.policies)
            .field("storage", &self.storage)
            .finish_non_exhaustive()
    }
}
