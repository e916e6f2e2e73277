//! Contracts, as core reads them and as Kubernetes keeps them: signing and verifying.
