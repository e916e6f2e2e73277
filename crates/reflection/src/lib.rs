//! The room in which pods run elsewhere as if they ran at home, with what they need.
//!
//! ```text
//!  home                                                      provider
//!  pods on virtual nodes ─────── ShadowPods ───────────────▶ pods, made by the provider's manager
//!      ▲ status, events ◀─────────────────────────────────── status, events
//!  ConfigMaps, Secrets, Services, EndpointSlices,
//!  Ingresses, claims, tokens ─── copies with our labels ───▶ the namespace there
//! ```
//!
//! What is at a provider without our label is never touched. What is translated, kind by kind, is in `docs/reflection.md`.

mod claims;
mod custom;
mod events;
mod fence;
mod metrics;
mod mirror;
mod pods;
mod policies;
mod reports;
mod room;
mod route;
mod rules;
mod settings;
mod strays;
mod tokens;
mod translate;

pub use metrics::ReflectionMetrics;
pub use policies::{Policies, Policy};
pub use room::Room;
pub use rules::RULES;
pub use settings::{Settings, Storage};
pub use translate::{Translate, Unchanged};
