//! The contract log: what was agreed, in order, nothing changed afterwards.
