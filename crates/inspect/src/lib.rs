//! Looking at an installation: what runs, what is wrong, what a bug report needs.
