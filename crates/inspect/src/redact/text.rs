//! What secrets look like in a text.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::REMOVED;
use super::names::{WORDS, is_secret};

/// Texts of this length with small and capital letters and digits are made by machines, and nobody misses them.
const RANDOM_LENGTH: usize = 40;

/// Patterns whose whole match goes, and what is put in its place.
static SHAPES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        // Base64 of "-----BEGIN".
        (r"LS0tLS1CRUdJTi[A-Za-z0-9+/_=-]*", REMOVED),
        // JSON web tokens, with or without signature.
        (r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)*", REMOVED),
        // The header of HTTP, and the same in prose.
        (r#"(?i)\b(bearer|negotiate)[\s=:]+["']?[^\s"',;]{4,}"#, "$1 <removed>"),
        (r"(?i)\b(basic|digest)\s+[A-Za-z0-9+/._~-]{16,}=*", "$1 <removed>"),
        (r"\b(Basic|Digest)\s+[A-Za-z0-9+/._~-]{4,}=+", "$1 <removed>"),
        // User and password in a URL; a password may have any sign in it.
        (r#"([A-Za-z][A-Za-z0-9+.-]*://)[^\s"'/@:]*:[^\s"']*@"#, "$1<removed>@"),
        (r#"([A-Za-z][A-Za-z0-9+.-]*://)[^\s"'/@]+@"#, "$1<removed>@"),
        // Tokens of kubeadm, k3s, clouds and code hosts.
        (r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b", REMOVED),
        (r"\bK10[0-9a-f]{32,}::\S+", REMOVED),
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", REMOVED),
        (r"\bAIza[0-9A-Za-z_-]{30,}", REMOVED),
        (
            r"\b(?:gh[pousr]|github_pat|glpat|xox[abprs]|sk|pk|rk|dckr_pat|hvs|npm)[-_][A-Za-z0-9_-]{16,}",
            REMOVED,
        ),
    ]
    .into_iter()
    .filter_map(|(pattern, replacement)| Some((Regex::new(pattern).ok()?, replacement)))
    .collect()
});

/// A key or certificate, whole or cut off. Line ends may be escaped, as in JSON.
static PEM: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?s)-----BEGIN ([A-Za-z0-9 ]+)-----.*?(?:-----END [A-Za-z0-9 ]+-----|\z)").ok()
});

/// A name that says so, a separator, and a value: quoted (also by escaped quotes), or up to where a value ends.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let value = r#"\\"(?:[^"\\]|\\[^"])*\\"|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,;&"'\\{}\[\]()]+"#;
    Regex::new(&format!(
        r#"(?i)(?P<name>[A-Z0-9_./-]*(?:{WORDS})[A-Z0-9_.-]*|\b_?auth|\bpass)(?P<between>\\?["']?\s*(?:=>|:=|[:=]|%3d|%3a)\s*)(?P<value>{value})"#
    ))
    .ok()
});

/// A flag and its value: `--token abc`.
static FLAG: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(r#"(?i)(?P<name>--?[A-Z0-9_.-]*(?:{WORDS})[A-Z0-9_.-]*)(?P<between>\s+)(?P<value>"[^"]*"?|'[^']*'?|[^\s-]\S*)"#)).ok()
});

static RANDOM: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"[A-Za-z0-9+/_-]{{{RANDOM_LENGTH},}}={{0,2}}")).ok());

/// The text without what looks like a secret.
pub(super) fn redact(text: &str) -> String {
    // A pattern that does not compile would let everything through; the tests would see it, and so does this.
    let (Some(pem), Some(named), Some(flag), Some(random)) = (&*PEM, &*NAMED, &*FLAG, &*RANDOM) else {
        return REMOVED.to_owned();
    };
    let text = pem.replace_all(text, |found: &Captures<'_>| match &found[1] {
        "PUBLIC KEY" => found[0].to_owned(),
        kind => format!("<removed: {kind}>"),
    });
    let text = blocks(&text);
    let text = SHAPES.iter().fold(Cow::Owned(text), |text: Cow<'_, str>, (pattern, replacement)| {
        Cow::Owned(pattern.replace_all(&text, *replacement).into_owned())
    });
    let text = named.replace_all(&text, keep_name);
    let text = flag.replace_all(&text, keep_name);
    random.replace_all(&text, keep_unless_random).into_owned()
}

fn keep_name(found: &Captures<'_>) -> String {
    let (name, between, value) = (&found["name"], &found["between"], &found["value"]);
    if !is_secret(name) {
        return found[0].to_owned();
    }
    let quote = ["\\\"", "\"", "'"].into_iter().find(|quote| value.starts_with(quote)).unwrap_or_default();
    format!("{name}{between}{quote}{REMOVED}{quote}")
}

/// A digest (hex) or a name (no capitals) is none.
fn keep_unless_random(found: &Captures<'_>) -> String {
    let word = &found[0];
    let has = |test: fn(char) -> bool| word.chars().any(test);
    let random =
        has(|c| c.is_ascii_lowercase()) && has(|c| c.is_ascii_uppercase()) && has(|c| c.is_ascii_digit());
    // Public keys are kept above; what is inside of them is no secret either.
    if random && !is_public_key(word) { REMOVED.to_owned() } else { word.to_owned() }
}

/// How the body of an Ed25519 public key begins, in every PEM.
fn is_public_key(word: &str) -> bool {
    word.starts_with("MCowBQYDK2VwAyEA")
}

/// Takes out values that YAML writes below their name: `password: |` and what is indented deeper.
fn blocks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut secret_below: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if let Some(name_indent) = secret_below {
            if line.trim().is_empty() || indent > name_indent {
                continue;
            }
            secret_below = None;
        }
        match opens_block(line) {
            Some(name) => {
                out += &format!("{name}: {REMOVED}\n");
                secret_below = Some(indent);
            }
            None => out += line,
        }
    }
    out
}

/// The name at the beginning of a line that ends where its secret value begins.
fn opens_block(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once(':')?;
    let name = before.trim().trim_start_matches("- ").trim_matches(['"', '\'']);
    let rest = rest.trim();
    let header = rest.is_empty() || (rest.starts_with(['|', '>']) && rest.len() <= 3);
    let named = !name.is_empty() && !name.contains(char::is_whitespace) && is_secret(name);
    (header && named).then_some(before)
}
