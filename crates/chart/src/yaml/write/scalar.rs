//! Texts in one of YAML's three quotings, folded where a line gets too long.

/// Behind this column Go's library continues on the next line at the next space.
const WIDTH: usize = 80;

/// Where a text is being written.
pub(super) struct Scalar<'a> {
    text: &'a mut String,
    column: usize,
    /// How far lines after the first are indented; none if there must not be any.
    indent: Option<usize>,
}

impl<'a> Scalar<'a> {
    /// A key stays on its line.
    pub(super) fn key(text: &'a mut String) -> Self {
        Self { text, column: 0, indent: None }
    }

    pub(super) fn value(text: &'a mut String, indent: usize) -> Self {
        let line = text.rsplit('\n').next().unwrap_or_default();
        let column = line.chars().count();
        Self { text, column, indent: Some(indent) }
    }

    pub(super) fn plain(&mut self, value: &str) {
        self.folded(value, Self::push);
    }

    pub(super) fn single_quoted(&mut self, value: &str) {
        self.push('\'');
        self.folded(value, |out, next| {
            if next == '\'' {
                out.push(next);
            }
            out.push(next);
        });
        self.push('\'');
    }

    /// Lines end at single spaces only, because a reader drops all spaces around a line's end.
    fn folded(&mut self, value: &str, write: fn(&mut Self, char)) {
        let mut before = None;
        let mut rest = value.chars();
        while let Some(next) = rest.next() {
            let alone = next == ' '
                && before.is_some_and(|before| before != ' ')
                && !starts_with_space(rest.as_str());
            if !(alone && self.fold()) {
                write(self, next);
            }
            before = Some(next);
        }
    }

    /// Here a backslash keeps spaces at a line's start.
    pub(super) fn double_quoted(&mut self, value: &str) {
        self.push('"');
        let mut before = None;
        let mut rest = value.chars();
        while let Some(next) = rest.next() {
            let inside = before.is_some_and(|before| before != ' ') && !rest.as_str().is_empty();
            if !(next == ' ' && inside && self.fold()) {
                self.escaped(next);
            } else if rest.as_str().starts_with(' ') {
                self.push('\\');
            }
            before = Some(next);
        }
        self.push('"');
    }

    fn escaped(&mut self, next: char) {
        let code = u32::from(next);
        let escape = match next {
            '"' | '\\' => format!("\\{next}"),
            '\0' => "\\0".into(),
            '\x07' => "\\a".into(),
            '\x08' => "\\b".into(),
            '\t' => "\\t".into(),
            '\n' => "\\n".into(),
            '\x0b' => "\\v".into(),
            '\x0c' => "\\f".into(),
            '\r' => "\\r".into(),
            '\x1b' => "\\e".into(),
            '\u{85}' => "\\N".into(),
            '\u{2028}' => "\\L".into(),
            '\u{2029}' => "\\P".into(),
            next if is_printable(next) => return self.push(next),
            _ if code <= 0xff => format!("\\x{code:02X}"),
            _ if code <= 0xffff => format!("\\u{code:04X}"),
            _ => format!("\\U{code:08X}"),
        };
        escape.chars().for_each(|next| self.push(next));
    }

    /// Starts a new line in place of a space, if this one is too long.
    fn fold(&mut self) -> bool {
        let Some(indent) = self.indent.filter(|_| self.column > WIDTH) else { return false };
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
        true
    }

    fn push(&mut self, next: char) {
        self.text.push(next);
        self.column += 1;
    }
}

fn starts_with_space(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(' ')
}

/// What need not be escaped.
pub(super) fn is_printable(next: char) -> bool {
    matches!(next, '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
        | '\u{ff00}'..='\u{fffd}')
}
