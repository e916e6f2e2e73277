//! Offers, as core makes them and as Kubernetes keeps them.
