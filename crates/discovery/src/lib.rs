//! The room in which other clusters are found.
