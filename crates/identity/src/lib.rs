//! The room in which a cluster gets its identity and tells about itself.
