//! File patterns, as in `.Files.Glob` and `.helmignore`.

use regex::Regex;

/// A pattern: `?`, `*` (within a directory), `**` (across directories), `[a-z]`, `{one,other}`, `\` before a character.
#[derive(Debug)]
pub(crate) struct Glob(Regex);

impl Glob {
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        Regex::new(&as_regex(pattern)).map(Self).map_err(|_| format!("{pattern:?} is not a file pattern"))
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

fn as_regex(pattern: &str) -> String {
    let mut regex = String::from("(?s)^");
    let mut alternatives = 0_usize;
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '*' if rest.next_if_eq(&'*').is_some() => regex.push_str(".*"),
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '[' => {
                regex.push('[');
                if rest.next_if(|next| matches!(next, '!' | '^')).is_some() {
                    regex.push('^');
                }
                for inside in rest.by_ref().take_while(|inside| *inside != ']') {
                    // A bracket's own syntax is only the hyphen; the rest would mean something to the regex.
                    if !inside.is_alphanumeric() && inside != '-' {
                        regex.push('\\');
                    }
                    regex.push(inside);
                }
                regex.push(']');
            }
            '{' => {
                alternatives += 1;
                regex.push_str("(?:");
            }
            '}' if alternatives > 0 => {
                alternatives -= 1;
                regex.push(')');
            }
            ',' if alternatives > 0 => regex.push('|'),
            '\\' => regex.push_str(&regex::escape(&rest.next().map(String::from).unwrap_or_default())),
            other => regex.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    regex.push('$');
    regex
}

#[cfg(test)]
mod tests;
