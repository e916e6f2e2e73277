//! What a template says, as a tree.

use std::rc::Rc;

use super::functions::Function;
use super::value::Value;

/// A part of a template.
#[derive(Debug)]
pub(crate) enum Node {
    /// Text that is copied.
    Text(String),
    /// `{{ pipeline }}`
    Action(Pipeline),
    /// `{{ if pipeline }}`
    If(Branch),
    /// `{{ with pipeline }}`
    With(Branch),
    /// `{{ range pipeline }}`
    Range(Branch),
    /// `{{ template "name" pipeline }}`
    Template { name: String, argument: Option<Pipeline>, line: u32 },
    /// `{{ break }}`
    Break,
    /// `{{ continue }}`
    Continue,
}

/// A condition, or what to walk through, and both ways to go on.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) pipeline: Pipeline,
    pub(crate) then: Vec<Node>,
    pub(crate) otherwise: Vec<Node>,
}

/// Commands, each of which gets the result of the one before as its last argument.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// Variables that get the result.
    pub(crate) variables: Vec<String>,
    /// Whether the variables are new (`:=`) or changed (`=`).
    pub(crate) declares: bool,
    pub(crate) commands: Vec<Command>,
    pub(crate) line: u32,
}

/// A word and its arguments.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) head: Operand,
    pub(crate) arguments: Vec<Operand>,
    pub(crate) line: u32,
}

/// Something that has a value.
#[derive(Debug)]
pub(crate) enum Operand {
    /// `.`
    Dot,
    /// A number, a string, `true`, `false` or `nil`.
    Constant(Value),
    /// `.a.b`
    Field(Vec<String>),
    /// `$x.a.b`
    Variable(String, Vec<String>),
    /// A function.
    Function(&'static Function),
    /// `( pipeline ).a.b`
    Nested(Box<Pipeline>, Vec<String>),
}

/// A template that others can include: its text, where it comes from.
#[derive(Debug)]
pub(crate) struct Template {
    /// The file it is written in, for messages.
    pub(crate) file: Rc<str>,
    pub(crate) nodes: Vec<Node>,
}

impl Template {
    /// Whether it has nothing but white space.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
    }
}
