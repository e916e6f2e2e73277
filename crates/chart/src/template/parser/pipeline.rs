//! Pipelines: `$x := .a | default "b" | quote`.

use super::{KEYWORDS, Parser, describe};
use crate::template::ast::{Command, Operand, Pipeline};
use crate::template::functions;
use crate::template::lexer::{Kind, SyntaxError, Token};
use crate::template::value::Value;

/// More variables than a `range` can set.
const MAX_VARIABLES: usize = 2;

impl Parser {
    /// `{{ pipeline }}`, behind its `{{`.
    pub(super) fn action(&mut self) -> Result<Pipeline, SyntaxError> {
        let pipeline = self.pipeline(false)?;
        self.close()?;
        Ok(pipeline)
    }

    /// Reads up to, but not including, `}}` or `)`.
    pub(super) fn pipeline(&mut self, range: bool) -> Result<Pipeline, SyntaxError> {
        let line = self.peek().map_or(1, |token| token.line);
        let (variables, declares) = self.variables(range)?;
        let mut commands = Vec::new();
        loop {
            let command = self.command()?;
            if !commands.is_empty() && matches!(command.head, Operand::Dot | Operand::Constant(_)) {
                return Err(SyntaxError::new(command.line, "what follows | must be a function"));
            }
            commands.push(command);
            match self.peek() {
                Some(Token { kind: Kind::Pipe, .. }) => self.at += 1,
                _ => break,
            }
        }
        // Not before: in `$x := $x` the second is an older one.
        if declares {
            self.variables.extend(variables.iter().cloned());
        }
        Ok(Pipeline { variables, declares, commands, line })
    }

    /// `$x :=`, `$x =` or for a range `$key, $value :=`.
    fn variables(&mut self, range: bool) -> Result<(Vec<String>, bool), SyntaxError> {
        let start = self.at;
        let mut names = Vec::new();
        while let Some(Token { kind: Kind::Variable(name), line, .. }) = self.next() {
            names.push(name);
            match self.next().map(|token| token.kind) {
                Some(Kind::Comma) if range && names.len() < MAX_VARIABLES => {}
                Some(Kind::Comma) if range => {
                    return Err(SyntaxError::new(line, "too many variables in this range"));
                }
                Some(Kind::Declare) => return Ok((names, true)),
                Some(Kind::Assign) => {
                    for name in &names {
                        self.check_variable(name, line)?;
                    }
                    return Ok((names, false));
                }
                _ => break,
            }
        }
        self.at = start;
        Ok((Vec::new(), false))
    }

    fn command(&mut self) -> Result<Command, SyntaxError> {
        let line = self.peek().map_or_else(|| self.line(), |token| token.line);
        let Some(head) = self.operand()? else {
            return Err(SyntaxError::new(line, "a value is missing here"));
        };
        let mut arguments = Vec::new();
        loop {
            let adjacent = self.peek().is_some_and(|token| !token.spaced);
            let Some(argument) = self.operand()? else { break };
            if adjacent {
                return Err(self.error("white space is missing before this operand"));
            }
            arguments.push(argument);
        }
        Ok(Command { head, arguments, line })
    }

    /// The next operand, unless the command ends here.
    fn operand(&mut self) -> Result<Option<Operand>, SyntaxError> {
        let Some(token) = self.next() else { return Err(self.error("}} is missing")) };
        let operand = match token.kind {
            Kind::Close | Kind::Pipe | Kind::RightParen => {
                self.at -= 1;
                return Ok(None);
            }
            Kind::Dot => Operand::Dot,
            Kind::Field(name) => Operand::Field(self.fields(vec![name])),
            Kind::Variable(name) => {
                self.check_variable(&name, token.line)?;
                Operand::Variable(name, self.fields(Vec::new()))
            }
            Kind::String(text) => Operand::Constant(Value::text(text)),
            Kind::Int(value) => Operand::Constant(Value::Int(value)),
            Kind::Float(value) => Operand::Constant(Value::Float(value)),
            Kind::Word(word) => word_operand(&word, token.line)?,
            Kind::LeftParen => self.nested(token.line)?,
            other => return Err(SyntaxError::new(token.line, format!("unexpected {}", describe(&other)))),
        };
        Ok(Some(operand))
    }

    /// The rest of `( pipeline ).a.b`.
    fn nested(&mut self, line: u32) -> Result<Operand, SyntaxError> {
        self.enter()?;
        let pipeline = self.pipeline(false)?;
        match self.next() {
            Some(Token { kind: Kind::RightParen, .. }) => {}
            _ => return Err(SyntaxError::new(line, "unclosed left parenthesis")),
        }
        self.depth -= 1;
        Ok(Operand::Nested(Box::new(pipeline), self.fields(Vec::new())))
    }

    /// The fields that follow without white space.
    fn fields(&mut self, mut names: Vec<String>) -> Vec<String> {
        while let Some(Token { kind: Kind::Field(name), spaced: false, .. }) = self.peek() {
            names.push(name.clone());
            self.at += 1;
        }
        names
    }

    fn check_variable(&self, name: &String, line: u32) -> Result<(), SyntaxError> {
        if self.variables.contains(name) {
            return Ok(());
        }
        Err(SyntaxError::new(line, format!("undefined variable ${name}")))
    }
}

fn word_operand(word: &str, line: u32) -> Result<Operand, SyntaxError> {
    Ok(match word {
        "true" => Operand::Constant(Value::Bool(true)),
        "false" => Operand::Constant(Value::Bool(false)),
        "nil" => Operand::Constant(Value::Nil),
        keyword if KEYWORDS.contains(&keyword) => {
            return Err(SyntaxError::new(line, format!("unexpected {keyword:?} in an expression")));
        }
        name => match functions::find(name) {
            Some(function) => Operand::Function(function),
            None => return Err(SyntaxError::new(line, format!("function {name:?} is not known"))),
        },
    })
}
