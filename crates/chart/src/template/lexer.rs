//! From a template's text to tokens.

use super::literal;

const LEFT: &str = "{{";
const RIGHT: &str = "}}";
const COMMENT_START: &str = "/*";
const COMMENT_END: &str = "*/";
/// The hyphen that trims and the white space that must be on its inner side.
const TRIM_MARKER: usize = 2;

/// A template that cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) line: u32,
    pub(crate) message: String,
}

impl SyntaxError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// A token and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) line: u32,
    /// Whether white space precedes it: `$x.y` is a field of `$x`, but `$x .y` are two operands.
    pub(crate) spaced: bool,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// Text between actions, already trimmed.
    Text(String),
    /// `{{`
    Open,
    /// `}}`
    Close,
    /// A keyword, a function, `true`, `false` or `nil`.
    Word(String),
    /// `.name`
    Field(String),
    /// `.`
    Dot,
    /// `$name`; an empty name is `$` itself.
    Variable(String),
    /// A quoted or raw string.
    String(String),
    /// A whole number or a character.
    Int(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// `|`
    Pipe,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `:=`
    Declare,
    /// `=`
    Assign,
    /// `,`
    Comma,
}

/// Cuts a template into tokens.
pub(crate) fn lex(text: &str) -> Result<Vec<Token>, SyntaxError> {
    let mut lexer = Lexer { rest: text, line: 1, tokens: Vec::new() };
    lexer.run()?;
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    tokens: Vec<Token>,
}

impl Lexer<'_> {
    fn run(&mut self) -> Result<(), SyntaxError> {
        let mut trim_start = false;
        while let Some(length) = self.rest.find(LEFT) {
            let trim_end = starts_with_left_trim(&self.rest[length + LEFT.len()..]);
            self.text(length, trim_start, trim_end);
            let line = self.line;
            self.advance(LEFT.len() + if trim_end { TRIM_MARKER } else { 0 });
            trim_start = if self.rest.starts_with(COMMENT_START) {
                self.comment()?
            } else {
                self.push(Kind::Open, line, false);
                self.action(line)?
            };
        }
        self.text(self.rest.len(), trim_start, false);
        Ok(())
    }

    /// Emits the next `length` bytes as text.
    fn text(&mut self, length: usize, trim_start: bool, trim_end: bool) {
        let mut text = &self.rest[..length];
        if trim_start {
            text = text.trim_start_matches(is_space);
        }
        if trim_end {
            text = text.trim_end_matches(is_space);
        }
        if !text.is_empty() {
            self.push(Kind::Text(text.to_owned()), self.line, false);
        }
        self.advance(length);
    }

    /// Skips a comment and its `}}`. Tells whether the text behind it is trimmed.
    fn comment(&mut self) -> Result<bool, SyntaxError> {
        let line = self.line;
        let end = self.rest.find(COMMENT_END).ok_or_else(|| SyntaxError::new(line, "unclosed comment"))?;
        self.advance(end + COMMENT_END.len());
        self.close()
            .ok_or_else(|| SyntaxError::new(self.line, "only }} or -}} may follow the end of a comment"))
    }

    /// Skips `}}` or ` -}}` if it is next. Tells whether the text behind it is trimmed.
    fn close(&mut self) -> Option<bool> {
        if self.rest.starts_with(RIGHT) {
            self.advance(RIGHT.len());
            return Some(false);
        }
        let marker = self.rest.strip_prefix(is_space)?.strip_prefix('-')?;
        marker.starts_with(RIGHT).then(|| {
            self.advance(TRIM_MARKER + RIGHT.len());
            true
        })
    }

    /// Emits the tokens up to and including `}}`. Tells whether the text behind it is trimmed.
    fn action(&mut self, opened_at: u32) -> Result<bool, SyntaxError> {
        let mut spaced = false;
        loop {
            let line = self.line;
            if let Some(trim) = self.close() {
                self.push(Kind::Close, line, spaced);
                return Ok(trim);
            }
            let Some(next) = self.rest.chars().next() else {
                return Err(SyntaxError::new(opened_at, "unclosed action: }} is missing"));
            };
            if is_space(next) {
                self.advance(next.len_utf8());
                spaced = true;
                continue;
            }
            let (kind, length) = self.token(next)?;
            self.advance(length);
            self.push(kind, line, spaced);
            spaced = false;
        }
    }

    /// The next token inside an action and its length.
    fn token(&self, next: char) -> Result<(Kind, usize), SyntaxError> {
        let simple = |kind| Ok((kind, next.len_utf8()));
        let digit_follows = self.rest[next.len_utf8()..].starts_with(|next: char| next.is_ascii_digit());
        match next {
            '|' => simple(Kind::Pipe),
            '(' => simple(Kind::LeftParen),
            ')' => simple(Kind::RightParen),
            ',' => simple(Kind::Comma),
            '=' => simple(Kind::Assign),
            ':' if self.rest.starts_with(":=") => Ok((Kind::Declare, ":=".len())),
            '"' => self.literal(literal::quoted(self.rest), Kind::String),
            '`' => self.literal(literal::raw(self.rest), Kind::String),
            '\'' => self.literal(literal::character(self.rest), Kind::Int),
            '$' => Ok(self.name(1, Kind::Variable)),
            '.' if !digit_follows => Ok(match self.name(1, Kind::Field) {
                (_, 1) => (Kind::Dot, 1),
                field => field,
            }),
            '.' | '+' | '-' | '0'..='9' => match literal::number(self.rest) {
                Ok((literal::Number::Int(value), length)) => Ok((Kind::Int(value), length)),
                Ok((literal::Number::Float(value), length)) => Ok((Kind::Float(value), length)),
                Err(message) => Err(SyntaxError::new(self.line, message)),
            },
            next if is_letter(next) => Ok(self.name(0, Kind::Word)),
            other => Err(SyntaxError::new(self.line, format!("unexpected {other:?} in an action"))),
        }
    }

    fn literal<T>(
        &self,
        read: Result<(T, usize), String>,
        kind: fn(T) -> Kind,
    ) -> Result<(Kind, usize), SyntaxError> {
        read.map(|(value, length)| (kind(value), length))
            .map_err(|message| SyntaxError::new(self.line, message))
    }

    /// A name that starts after `sigil` bytes.
    fn name(&self, sigil: usize, kind: fn(String) -> Kind) -> (Kind, usize) {
        let name = &self.rest[sigil..];
        let length = name.find(|next| !is_letter(next) && !char::is_numeric(next)).unwrap_or(name.len());
        (kind(name[..length].to_owned()), sigil + length)
    }

    fn push(&mut self, kind: Kind, line: u32, spaced: bool) {
        self.tokens.push(Token { kind, line, spaced });
    }

    fn advance(&mut self, length: usize) {
        let (passed, rest) = self.rest.split_at(length);
        self.line += passed.bytes().filter(|byte| *byte == b'\n').count() as u32;
        self.rest = rest;
    }
}

fn starts_with_left_trim(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|text| text.starts_with(is_space))
}

fn is_space(next: char) -> bool {
    matches!(next, ' ' | '\t' | '\r' | '\n')
}

fn is_letter(next: char) -> bool {
    next == '_' || next.is_alphabetic()
}

#[cfg(test)]
mod tests;
