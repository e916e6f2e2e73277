//! Names that say that their value is secret.

use std::sync::LazyLock;

use regex::Regex;

/// Part of a pattern: words by which people name secrets.
pub(super) const WORDS: &str = "passw(?:or)?d|passphrase|passcode|pwd|secret|token|credential|bearer|cookie|\
     api[-_.]?key|private[-_.]?key|access[-_.]?key|auth[-_.]?key|account[-_.]?key|signing[-_.]?key|\
     encryption[-_.]?key|client[-_.]?key|ssh[-_.]?key|master[-_.]?key|shared[-_.]?key|wg[-_.]?key|psk|\
     session[-_.]?(?:id|key)|amz[-_.]?signature|authorization|jwt|kubeconfig";

/// Names that contain such a word and tell where a secret is, or how long it lasts, but not what it is.
const HARMLESS: &str = "secretname|secretnamespace|secretref|secretkeyref|secretproviderclass|imagepullsecrets?|pullsecrets?|\
     tokenexpirationseconds|automountserviceaccounttoken|tokenrequests|tokenaudiences?|secretkind|secrettype";

static SECRET: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("(?i){WORDS}")).ok());
static EXACT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("(?i)^[_.]?auth$|^pass$|^key[-_]?data$").ok());
static FINE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("(?i)^(?:.*[-_./])?(?:{HARMLESS})$")).ok());

fn matches(pattern: &LazyLock<Option<Regex>>, name: &str, otherwise: bool) -> bool {
    pattern.as_ref().map_or(otherwise, |pattern| pattern.is_match(name))
}

/// Whether a name says that its value is secret. If in doubt, it does.
pub(super) fn is_secret(name: &str) -> bool {
    let letters: String = name.chars().filter(|c| *c != '-' && *c != '_').collect();
    if matches(&FINE, name, false) || matches(&FINE, &letters, false) {
        return false;
    }
    matches(&SECRET, name, true) || matches(&EXACT, name, true)
}
