//! Running a template.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::ast::{Branch, Node, Pipeline, Template};
use super::budget::{Budget, ITEM_COST, Level};
use super::format;
use super::value::Value;

mod command;
mod field;

/// How many including templates an error names; enough to find the way, and no page of a recursion.
const MAX_TRAIL: usize = 5;

/// All templates of a chart by name.
pub(crate) type Templates = BTreeMap<String, Rc<Template>>;

/// What went wrong while a template ran, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) message: String,
    /// Where the template was included, innermost first.
    pub(crate) trail: Vec<Place>,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: Rc<str>,
    pub(crate) line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)
    }
}

/// Adds templates; an empty one does not replace one with content.
pub(crate) fn add(templates: &mut Templates, more: Templates) {
    for (name, template) in more {
        if !template.is_empty() || !templates.contains_key(&name) {
            templates.insert(name, template);
        }
    }
}

/// Runs a template to its text.
pub(crate) fn execute(
    templates: &Templates,
    template: &Template,
    dot: &Value,
    budget: &Budget,
) -> Result<String, Fault> {
    let variables = vec![(String::new(), dot.clone())];
    let mut frame =
        Frame { templates, budget, file: Rc::clone(&template.file), variables, output: String::new() };
    frame.walk(&template.nodes, dot, 1)?;
    Ok(frame.output)
}

/// How a block ended.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

/// One running template.
struct Frame<'a> {
    templates: &'a Templates,
    budget: &'a Budget,
    file: Rc<str>,
    /// Variables in the order of their declaration; the empty name is `$`.
    variables: Vec<(String, Value)>,
    output: String,
}

impl<'a> Frame<'a> {
    fn walk(&mut self, nodes: &[Node], dot: &Value, line: u32) -> Result<Flow, Fault> {
        let _level = self.enter(line)?;
        for node in nodes {
            let flow = self.node(node, dot, line)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn node(&mut self, node: &Node, dot: &Value, line: u32) -> Result<Flow, Fault> {
        self.budget.step().map_err(|message| self.fault(line, message))?;
        match node {
            Node::Text(text) => self.write(text, line)?,
            Node::Action(pipeline) => {
                let value = self.pipeline(pipeline, dot)?;
                if pipeline.variables.is_empty() {
                    self.print(&value, pipeline.line)?;
                }
            }
            Node::If(branch) => return self.scoped(|frame| frame.branch(branch, dot, false)),
            Node::With(branch) => return self.scoped(|frame| frame.branch(branch, dot, true)),
            Node::Range(branch) => return self.scoped(|frame| frame.range(branch, dot)),
            Node::Template { name, argument, line } => {
                let argument =
                    argument.as_ref().map_or(Ok(Value::Nil), |argument| self.pipeline(argument, dot))?;
                let text = self.include(name, &argument, *line)?;
                self.write(&text, *line)?;
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    /// Forgets afterwards the variables that were declared inside.
    fn scoped<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        let seen = self.variables.len();
        let result = inside(self);
        self.variables.truncate(seen);
        result
    }

    /// `if`, or `with` if the value becomes the dot.
    fn branch(&mut self, branch: &Branch, dot: &Value, with: bool) -> Result<Flow, Fault> {
        let value = self.pipeline(&branch.pipeline, dot)?;
        let line = branch.pipeline.line;
        match (value.is_true(), with) {
            (true, true) => self.walk(&branch.then, &value, line),
            (true, false) => self.walk(&branch.then, dot, line),
            (false, _) => self.walk(&branch.otherwise, dot, line),
        }
    }

    fn range(&mut self, branch: &Branch, dot: &Value) -> Result<Flow, Fault> {
        let line = branch.pipeline.line;
        let value = self.commands(&branch.pipeline, dot)?;
        let pairs = pairs(&value, self.budget).map_err(|message| self.fault(line, message))?;
        if matches!(value, Value::Int(_)) && branch.pipeline.variables.len() > 1 {
            return Err(self.fault(line, "range over a number has one variable"));
        }
        let mut empty = true;
        for (key, item) in pairs {
            empty = false;
            self.budget.step().map_err(|message| self.fault(line, message))?;
            let flow = self.scoped(|frame| {
                frame.set_range_variables(&branch.pipeline, key, &item)?;
                frame.walk(&branch.then, &item, line)
            })?;
            if flow == Flow::Break {
                break;
            }
        }
        if empty { self.walk(&branch.otherwise, dot, line) } else { Ok(Flow::On) }
    }

    fn set_range_variables(&mut self, pipeline: &Pipeline, key: Value, item: &Value) -> Result<(), Fault> {
        match pipeline.variables.as_slice() {
            [] => Ok(()),
            [name] => self.set(pipeline, name, item.clone()),
            [first, second, ..] => {
                self.set(pipeline, first, key)?;
                self.set(pipeline, second, item.clone())
            }
        }
    }

    /// A pipeline's value, which its variables get.
    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Value) -> Result<Value, Fault> {
        let value = self.commands(pipeline, dot)?;
        for name in &pipeline.variables {
            self.set(pipeline, name, value.clone())?;
        }
        Ok(value)
    }

    fn set(&mut self, pipeline: &Pipeline, name: &str, value: Value) -> Result<(), Fault> {
        if pipeline.declares {
            self.variables.push((name.to_owned(), value));
            return Ok(());
        }
        let fault = self.fault(pipeline.line, format!("undefined variable ${name}"));
        let (_, slot) = self.variables.iter_mut().rev().find(|(known, _)| known == name).ok_or(fault)?;
        *slot = value;
        Ok(())
    }

    fn variable(&self, name: &str, line: u32) -> Result<&Value, Fault> {
        let found = self.variables.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value).ok_or_else(|| self.fault(line, format!("undefined variable ${name}")))
    }

    /// Runs a named template.
    fn include(&self, name: &str, dot: &Value, line: u32) -> Result<String, Fault> {
        let Some(template) = self.templates.get(name) else {
            return Err(self.fault(line, format!("there is no template {name:?}")));
        };
        let _level = self.enter(line)?;
        execute(self.templates, template, dot, self.budget).map_err(|fault| self.included(fault, line))
    }

    /// Adds to an error where the template was included.
    fn included(&self, mut fault: Fault, line: u32) -> Fault {
        if fault.trail.len() < MAX_TRAIL {
            fault.trail.push(self.place(line));
        }
        fault
    }

    /// Writes a value as Helm does: what has no value is written as nothing.
    fn print(&mut self, value: &Value, line: u32) -> Result<(), Fault> {
        match value {
            Value::Nil => Ok(()),
            Value::Text(text) => self.write(text, line),
            other => {
                let text = format::show(other, self.budget).map_err(|message| self.fault(line, message))?;
                self.write(&text, line)
            }
        }
    }

    fn write(&mut self, text: &str, line: u32) -> Result<(), Fault> {
        self.budget.make(text.len()).map_err(|message| self.fault(line, message))?;
        self.output.push_str(text);
        Ok(())
    }

    fn enter(&self, line: u32) -> Result<Level<'a>, Fault> {
        self.budget.enter().map_err(|message| self.fault(line, message))
    }

    fn fault(&self, line: u32, message: impl Into<String>) -> Fault {
        Fault { place: self.place(line), message: message.into(), trail: Vec::new() }
    }

    fn place(&self, line: u32) -> Place {
        Place { file: Rc::clone(&self.file), line }
    }
}

/// What a `range` walks through.
fn pairs(value: &Value, budget: &Budget) -> Result<Box<dyn Iterator<Item = (Value, Value)>>, String> {
    let index = |index: usize| Value::Int(index as i64);
    Ok(match value {
        Value::Nil => Box::new(std::iter::empty()),
        Value::Int(count) => Box::new((0..*count).map(|number| (Value::Int(number), Value::Int(number)))),
        Value::List(list) => {
            let list = Rc::clone(list);
            Box::new((0..list.0.len()).map(move |at| (index(at), list.0[at].clone())))
        }
        Value::ApiVersions(versions) => {
            let versions = Rc::clone(versions);
            Box::new((0..versions.len()).map(move |at| (index(at), Value::text(versions[at].as_str()))))
        }
        Value::Map(map) => {
            // A copy, because the loop may change the map.
            let entries = map.0.borrow().clone();
            budget.read(entries.len() * ITEM_COST)?;
            Box::new(entries.into_iter().map(|(key, value)| (Value::text(key), value)))
        }
        Value::Files(files) => {
            let text = |path: &String| Ok((Value::text(path.as_str()), Value::text(files.get(path)?)));
            Box::new(files.0.keys().map(text).collect::<Result<Vec<_>, String>>()?.into_iter())
        }
        other => return Err(format!("range needs a list or a map, not {}", other.noun())),
    })
}

#[cfg(test)]
mod tests;
