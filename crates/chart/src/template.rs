//! Go's text/template language, as far as Helm charts use it.
//!
//! ```text
//! text ──lexer──▶ tokens ──parser──▶ tree ──evaluate──▶ text
//!                                              │ functions, format, files
//!                                              └ budget: depth, work, memory
//! ```

mod ast;
mod budget;
mod evaluate;
mod files;
mod format;
mod functions;
mod lexer;
mod literal;
mod parser;
mod value;

pub(crate) use budget::Budget;
pub(crate) use evaluate::{Fault, Templates, add, execute};
pub(crate) use files::Files;
pub(crate) use format::shortest_float;
pub(crate) use functions::satisfies;
pub(crate) use parser::parse;
pub(crate) use value::Value;

#[cfg(test)]
mod testing;
