//! Commands of a pipeline: fields, variables, constants and function calls.

use super::{Fault, Frame, execute};
use crate::template::ast::{Command, Operand, Pipeline};
use crate::template::budget::{ITEM_COST, TREE_COST};
use crate::template::functions::{Action, Args, Function};
use crate::template::parser;
use crate::template::value::Value;

impl Frame<'_> {
    /// Runs the commands one after the other, each with the result of the one before.
    pub(super) fn commands(&mut self, pipeline: &Pipeline, dot: &Value) -> Result<Value, Fault> {
        let mut piped = None;
        for command in &pipeline.commands {
            piped = Some(self.command(command, dot, piped)?);
        }
        Ok(piped.unwrap_or(Value::Nil))
    }

    fn command(&mut self, command: &Command, dot: &Value, piped: Option<Value>) -> Result<Value, Fault> {
        let line = command.line;
        if let Operand::Function(function) = &command.head {
            return self.call(function, command, dot, piped);
        }
        if command.arguments.is_empty() && piped.is_none() {
            if let Operand::Constant(Value::Nil) = command.head {
                return Err(self.fault(line, "nil is not a command"));
            }
            return self.operand(&command.head, dot, line);
        }
        // Only the methods of built-in objects, such as `.Files.Get`, take arguments.
        let arguments = self.arguments(command, dot, piped)?;
        match &command.head {
            Operand::Field(fields) => self.method(dot, "", fields, &arguments, line),
            Operand::Variable(name, fields) => {
                let receiver = self.variable(name, line)?.clone();
                self.method(&receiver, &format!("${name}"), fields, &arguments, line)
            }
            Operand::Nested(pipeline, fields) => {
                let receiver = self.nested(pipeline, dot, line)?;
                self.method(&receiver, "(…)", fields, &arguments, line)
            }
            Operand::Dot | Operand::Constant(_) | Operand::Function(_) => {
                Err(self.fault(line, "an argument is given to something that is no function"))
            }
        }
    }

    fn arguments(
        &mut self,
        command: &Command,
        dot: &Value,
        piped: Option<Value>,
    ) -> Result<Vec<Value>, Fault> {
        let given = command.arguments.iter();
        let mut arguments =
            given.map(|argument| self.operand(argument, dot, command.line)).collect::<Result<Vec<_>, _>>()?;
        arguments.extend(piped);
        Ok(arguments)
    }

    /// The value of an operand that stands alone or as an argument.
    fn operand(&mut self, operand: &Operand, dot: &Value, line: u32) -> Result<Value, Fault> {
        match operand {
            Operand::Dot => Ok(dot.clone()),
            Operand::Constant(value) => Ok(value.clone()),
            Operand::Field(fields) => self.fields(dot, "", fields, line),
            Operand::Variable(name, fields) => {
                let receiver = self.variable(name, line)?.clone();
                self.fields(&receiver, &format!("${name}"), fields, line)
            }
            Operand::Nested(pipeline, fields) => {
                let receiver = self.nested(pipeline, dot, line)?;
                self.fields(&receiver, "(…)", fields, line)
            }
            Operand::Function(function) => self.apply(function, &[], line),
        }
    }

    fn nested(&mut self, pipeline: &Pipeline, dot: &Value, line: u32) -> Result<Value, Fault> {
        let _level = self.enter(line)?;
        self.pipeline(pipeline, dot)
    }

    fn call(
        &mut self,
        function: &Function,
        command: &Command,
        dot: &Value,
        piped: Option<Value>,
    ) -> Result<Value, Fault> {
        match function.action {
            Action::And => self.first_that(false, command, dot, piped),
            Action::Or => self.first_that(true, command, dot, piped),
            _ => {
                let arguments = self.arguments(command, dot, piped)?;
                self.apply(function, &arguments, command.line)
            }
        }
    }

    /// `and` gives the first untrue argument, `or` the first true one, and both the last one otherwise. What follows
    /// is not evaluated, so that `and .a .a.b` is safe.
    fn first_that(
        &mut self,
        truth: bool,
        command: &Command,
        dot: &Value,
        piped: Option<Value>,
    ) -> Result<Value, Fault> {
        let mut value = None;
        for argument in &command.arguments {
            let next = self.operand(argument, dot, command.line)?;
            if next.is_true() == truth {
                return Ok(next);
            }
            value = Some(next);
        }
        piped.or(value).ok_or_else(|| self.fault(command.line, "and, or: an argument is missing"))
    }

    /// Calls a function with arguments that are already known.
    fn apply(&self, function: &Function, arguments: &[Value], line: u32) -> Result<Value, Fault> {
        let named = |message: String| self.fault(line, format!("{}: {message}", function.name));
        self.budget.step().map_err(named)?;
        function.check(arguments).map_err(named)?;
        let args = Args::new(arguments, self.budget);
        match function.action {
            Action::Include => {
                let name = args.text(0).map_err(named)?;
                self.include(name, args.get(1), line).map(Value::text)
            }
            Action::Tpl => {
                let text = args.text(0).map_err(named)?;
                self.tpl(text, args.get(1), line)
            }
            Action::Plain(plain) => plain(&args).map_err(named),
            // The message is the chart author's own, written for the user.
            Action::Spoken(spoken) => spoken(&args).map_err(|message| self.fault(line, message)),
            Action::And | Action::Or => Err(self.fault(line, "and, or: an argument is missing")),
        }
    }

    /// Runs a text of the values as a template. What it defines, it defines for itself alone.
    fn tpl(&self, text: &str, dot: &Value, line: u32) -> Result<Value, Fault> {
        let _level = self.enter(line)?;
        let cost = text.len() * TREE_COST + self.templates.len() * ITEM_COST;
        self.budget.make(cost).map_err(|message| self.fault(line, message))?;
        let file = format!("{} (tpl)", self.file);
        let parsed = parser::parse(&file, text).map_err(|error| {
            self.fault(line, format!("tpl: cannot read {text:?}, line {}: {}", error.line, error.message))
        })?;
        let mut templates = self.templates.clone();
        super::add(&mut templates, parsed);
        let Some(main) = templates.get(&file) else { return Ok(Value::text("")) };
        execute(&templates, main, dot, self.budget)
            .map(Value::text)
            .map_err(|fault| self.included(fault, line))
    }
}
