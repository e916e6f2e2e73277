//! The Helm chart, rendered without Helm.
