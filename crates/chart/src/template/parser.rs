//! From tokens to a tree.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::ast::{Branch, Node, Template};
use super::lexer::{Kind, SyntaxError, Token, lex};

mod pipeline;

/// Blocks and parentheses inside each other in one file.
const MAX_DEPTH: usize = 100;

/// A file's main template (under the file's name) and those that it defines.
pub(crate) type Parsed = BTreeMap<String, Rc<Template>>;

/// Reads one template file.
pub(crate) fn parse(file: &str, text: &str) -> Result<Parsed, SyntaxError> {
    let mut parser = Parser {
        tokens: lex(text)?,
        at: 0,
        file: file.into(),
        variables: vec![String::new()],
        loops: 0,
        depth: 0,
        defined: Parsed::new(),
    };
    let (nodes, end) = parser.block(true)?;
    if let Some(end) = end {
        return Err(SyntaxError::new(end.line, format!("unexpected {{{{{}}}}}", end.word)));
    }
    parser.define(file.to_owned(), nodes)?;
    Ok(parser.defined)
}

/// The keyword that closed a block, and the line it stands in.
struct End {
    word: String,
    line: u32,
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    file: Rc<str>,
    /// The variables that can be seen here; the empty name is `$`.
    variables: Vec<String>,
    loops: usize,
    depth: usize,
    defined: Parsed,
}

impl Parser {
    /// Reads nodes up to `{{end}}`, `{{else…}}` (whose rest is left to be read) or the end of the file.
    fn block(&mut self, top: bool) -> Result<(Vec<Node>, Option<End>), SyntaxError> {
        let mut nodes = Vec::new();
        while let Some(token) = self.next() {
            if let Kind::Text(text) = token.kind {
                nodes.push(Node::Text(text));
                continue;
            }
            // Between texts there are only actions.
            let word = self.keyword();
            match word.as_deref() {
                Some("end" | "else") => return Ok((nodes, word.map(|word| End { word, line: token.line }))),
                Some("define") if top => self.definition()?,
                Some("define") => return Err(self.error("define must not be inside another block")),
                Some(word) => nodes.push(self.control(word, token.line)?),
                None => nodes.push(Node::Action(self.action()?)),
            }
        }
        Ok((nodes, None))
    }

    /// Takes the keyword that an action starts with.
    fn keyword(&mut self) -> Option<String> {
        let Kind::Word(word) = &self.peek()?.kind else { return None };
        let keyword = KEYWORDS.contains(&word.as_str()).then(|| word.clone())?;
        self.at += 1;
        Some(keyword)
    }

    fn control(&mut self, word: &str, line: u32) -> Result<Node, SyntaxError> {
        match word {
            "if" => self.branch(word, line).map(Node::If),
            "with" => self.branch(word, line).map(Node::With),
            "range" => self.branch(word, line).map(Node::Range),
            "template" => self.call(line),
            "block" => self.block_template(line),
            other if self.loops == 0 => Err(self.error(format!("{{{{{other}}}}} outside of a range"))),
            "break" => self.close().map(|()| Node::Break),
            _ => self.close().map(|()| Node::Continue),
        }
    }

    /// The rest of `{{if …}} … {{else …}} … {{end}}` and its like.
    fn branch(&mut self, word: &str, line: u32) -> Result<Branch, SyntaxError> {
        self.enter()?;
        let seen = self.variables.len();
        let range = word == "range";
        let pipeline = self.pipeline(range)?;
        self.close()?;
        self.loops += usize::from(range);
        let (then, end) = self.block(false)?;
        self.loops -= usize::from(range);
        let otherwise = match end {
            None => return Err(unclosed(word, line)),
            Some(end) if end.word == "end" => {
                self.close()?;
                Vec::new()
            }
            Some(end) => self.otherwise(word, line, &end)?,
        };
        self.variables.truncate(seen);
        self.depth -= 1;
        Ok(Branch { pipeline, then, otherwise })
    }

    /// What follows `{{else`: `}} … {{end}}`, or for the same keyword another branch that shares the `{{end}}`.
    fn otherwise(&mut self, word: &str, line: u32, end: &End) -> Result<Vec<Node>, SyntaxError> {
        match self.keyword().as_deref() {
            Some("if") if word == "if" => return Ok(vec![Node::If(self.branch("if", end.line)?)]),
            Some("with") if word == "with" => return Ok(vec![Node::With(self.branch("with", end.line)?)]),
            Some(other) => return Err(self.error(format!("unexpected {other} after else"))),
            None => self.close()?,
        }
        match self.block(false)? {
            (nodes, Some(end)) if end.word == "end" => self.close().map(|()| nodes),
            (_, Some(end)) => Err(SyntaxError::new(end.line, format!("a second else in one {word}"))),
            (_, None) => Err(unclosed(word, line)),
        }
    }

    /// `{{template "name" pipeline}}`
    fn call(&mut self, line: u32) -> Result<Node, SyntaxError> {
        let name = self.template_name("template")?;
        let argument = match self.peek() {
            Some(Token { kind: Kind::Close, .. }) => None,
            _ => Some(self.pipeline(false)?),
        };
        self.close()?;
        Ok(Node::Template { name, argument, line })
    }

    /// `{{block "name" pipeline}} … {{end}}`: a definition and its use at once.
    fn block_template(&mut self, line: u32) -> Result<Node, SyntaxError> {
        let name = self.template_name("block")?;
        let argument = Some(self.pipeline(false)?);
        self.close()?;
        self.body("block", &name, line)?;
        Ok(Node::Template { name, argument, line })
    }

    /// `{{define "name"}} … {{end}}`
    fn definition(&mut self) -> Result<(), SyntaxError> {
        let line = self.line();
        let name = self.template_name("define")?;
        self.close()?;
        self.body("define", &name, line)
    }

    fn body(&mut self, word: &str, name: &str, line: u32) -> Result<(), SyntaxError> {
        self.enter()?;
        // A named template sees none of the variables around it, and breaks none of the loops.
        let variables = std::mem::replace(&mut self.variables, vec![String::new()]);
        let loops = std::mem::take(&mut self.loops);
        let (nodes, end) = self.block(false)?;
        self.variables = variables;
        self.loops = loops;
        self.depth -= 1;
        match end {
            Some(end) if end.word == "end" => self.close()?,
            Some(end) => {
                return Err(SyntaxError::new(end.line, format!("unexpected else in {word} {name:?}")));
            }
            None => return Err(unclosed(word, line)),
        }
        self.define(name.to_owned(), nodes)
    }

    /// As in Go, a template without content neither replaces one that has some nor is in the way of one.
    fn define(&mut self, name: String, nodes: Vec<Node>) -> Result<(), SyntaxError> {
        let template = Template { file: Rc::clone(&self.file), nodes };
        match self.defined.get(&name) {
            Some(_) if template.is_empty() => {}
            Some(other) if !other.is_empty() => {
                return Err(self.error(format!("template {name:?} is defined twice in this file")));
            }
            _ => drop(self.defined.insert(name, Rc::new(template))),
        }
        Ok(())
    }

    /// Goes one level deeper; the caller comes back with `self.depth -= 1`.
    fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} blocks or parentheses inside each other")));
        }
        Ok(())
    }

    fn template_name(&mut self, word: &str) -> Result<String, SyntaxError> {
        match self.next() {
            Some(Token { kind: Kind::String(name), .. }) => Ok(name),
            _ => Err(self.error(format!("a quoted name must follow {word}"))),
        }
    }

    fn close(&mut self) -> Result<(), SyntaxError> {
        match self.next() {
            Some(Token { kind: Kind::Close, .. }) => Ok(()),
            Some(token) => Err(SyntaxError::new(token.line, format!("unexpected {}", describe(&token.kind)))),
            None => Err(self.error("}} is missing")),
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += usize::from(token.is_some());
        token
    }

    /// The line of the token read last.
    fn line(&self) -> u32 {
        self.tokens.get(self.at.saturating_sub(1)).map_or(1, |token| token.line)
    }

    fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.line(), message)
    }
}

/// Words that start a control action, or end one.
const KEYWORDS: [&str; 10] =
    ["if", "with", "range", "template", "block", "define", "else", "end", "break", "continue"];

fn unclosed(word: &str, line: u32) -> SyntaxError {
    SyntaxError::new(line, format!("{{{{end}}}} is missing for this {word}"))
}

/// How a token looks, for messages.
fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Text(_) => "text".into(),
        Kind::Open => "{{".into(),
        Kind::Close => "}}".into(),
        Kind::Word(word) => format!("{word:?}"),
        Kind::Field(name) => format!("\".{name}\""),
        Kind::Dot => "\".\"".into(),
        Kind::Variable(name) => format!("\"${name}\""),
        Kind::String(text) => format!("string {text:?}"),
        Kind::Int(value) => format!("\"{value}\""),
        Kind::Float(value) => format!("\"{value}\""),
        Kind::Pipe => "\"|\"".into(),
        Kind::LeftParen => "\"(\"".into(),
        Kind::RightParen => "\")\"".into(),
        Kind::Declare => "\":=\"".into(),
        Kind::Assign => "\"=\"".into(),
        Kind::Comma => "\",\"".into(),
    }
}

#[cfg(test)]
mod tests;
