//! The room in which clusters prove who they are and get their keys.
