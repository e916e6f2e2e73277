//! `semverCompare`: does a version satisfy a constraint such as `>=1.32.0-0`, `^1.2 || ~2.3.x` or `1.2 - 1.4`?

use std::cmp::Ordering;

/// A version; what it lacks counts as zero.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<String>,
}

/// A comparison with a version.
#[derive(Debug)]
struct Constraint<'a> {
    operator: &'a str,
    version: Version,
    /// How many numbers of the version are given: `1.x` has one.
    given: usize,
}

/// Whether the version satisfies the constraint. Both may start with a `v`, and build metadata plays no part.
pub(crate) fn satisfies(constraint: &str, version: &str) -> Result<bool, String> {
    let (version, given, rest) = read_version(version.trim()).ok_or_else(|| not_a_version(version))?;
    if given == 0 || !rest.is_empty() {
        return Err(not_a_version(rest));
    }
    let mut satisfied = false;
    for group in constraint.split("||") {
        let constraints =
            read_group(group).ok_or_else(|| format!("{constraint:?} is no version constraint"))?;
        satisfied |= constraints.iter().all(|constraint| constraint.allows(&version));
    }
    Ok(satisfied)
}

fn not_a_version(text: &str) -> String {
    format!("{text:?} is no version")
}

/// Constraints that must all hold, apart by commas or spaces.
fn read_group(group: &str) -> Option<Vec<Constraint<'_>>> {
    let mut constraints: Vec<Constraint<'_>> = Vec::new();
    let mut rest = group.trim();
    loop {
        let start = rest.trim_start_matches([',', ' ']);
        // `1.2 - 1.4`: both ends belong to the range.
        if let (Some(upper), Some(lower)) = (start.strip_prefix("- "), constraints.last_mut()) {
            lower.operator = ">=";
            rest = read_constraint(upper.trim_start(), &mut constraints)?;
            constraints.last_mut()?.operator = "<=";
        } else if start.is_empty() {
            break;
        } else {
            rest = read_constraint(start, &mut constraints)?;
        }
    }
    (!constraints.is_empty()).then_some(constraints)
}

fn read_constraint<'a>(text: &'a str, constraints: &mut Vec<Constraint<'a>>) -> Option<&'a str> {
    let (operator, version) = text.split_at(text.find(|next| !"=!<>~^".contains(next))?);
    if !["", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^"].contains(&operator) {
        return None;
    }
    let (version, given, rest) = read_version(version.trim_start())?;
    constraints.push(Constraint { operator, version, given });
    Some(rest)
}

/// The version at the start of the text, how many of its numbers are given, and what follows it.
fn read_version(text: &str) -> Option<(Version, usize, &str)> {
    let end = text.find([',', ' ']).unwrap_or(text.len());
    let (version, rest) = text.split_at(end);
    let version = version.strip_prefix('v').unwrap_or(version);
    let version = version.split_once('+').map_or(version, |(version, _build)| version);
    let (numbers, pre) =
        version.split_once('-').map_or((version, None), |(numbers, pre)| (numbers, Some(pre)));
    let parts: Vec<&str> = numbers.split('.').collect();
    if parts.len() > 3 {
        return None;
    }
    let wild = |part: &&str| matches!(*part, "x" | "X" | "*");
    let given = parts.iter().position(wild).unwrap_or(parts.len());
    let number = |at: usize| if at < given { parts[at].parse().ok() } else { Some(0) };
    let pre: Vec<String> = pre.map(|pre| pre.split('.').map(str::to_owned).collect()).unwrap_or_default();
    let clean = |part: &String| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if !pre.iter().all(clean) {
        return None;
    }
    Some((Version { major: number(0)?, minor: number(1)?, patch: number(2)?, pre }, given, rest))
}

impl Constraint<'_> {
    fn allows(&self, version: &Version) -> bool {
        // A pre-release is wanted only by a constraint that names one.
        if !version.pre.is_empty() && self.version.pre.is_empty() {
            return false;
        }
        match self.operator {
            "!=" => !self.covers(version),
            ">" if self.given < 3 => version > &self.version && !self.covers(version),
            ">" => version > &self.version,
            "<" => version < &self.version,
            ">=" | "=>" => version >= &self.version,
            "<=" | "=<" => version <= &self.version || self.covers(version),
            "~" | "~>" => self.is_near(version),
            "^" => self.is_compatible(version),
            _ => self.covers(version),
        }
    }

    /// Whether all numbers that are given are the same.
    fn covers(&self, version: &Version) -> bool {
        let (one, other) = (version.numbers(), self.version.numbers());
        one[..self.given] == other[..self.given] && (self.given < 3 || version.pre == self.version.pre)
    }

    /// `~1.2.3`: the last number may grow.
    fn is_near(&self, version: &Version) -> bool {
        let fixed = self.given.min(2);
        // `~0.0.0` allows everything, as in the library that Helm uses.
        let anything = self.given == 3 && self.version.numbers() == [0, 0, 0];
        version >= &self.version
            && (anything || version.numbers()[..fixed] == self.version.numbers()[..fixed])
    }

    /// `^1.2.3`: all that does not change the first number that is not zero.
    fn is_compatible(&self, version: &Version) -> bool {
        let numbers = self.version.numbers();
        let fixed = match numbers.iter().position(|number| *number != 0) {
            Some(at) => (at + 1).min(self.given.max(1)),
            None => self.given,
        };
        version >= &self.version && version.numbers()[..fixed] == numbers[..fixed]
    }
}

impl Version {
    fn numbers(&self) -> [u64; 3] {
        [self.major, self.minor, self.patch]
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers().cmp(&other.numbers()).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => compare_pre(&self.pre, &other.pre),
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Part by part; numbers before words, and the longer one later.
fn compare_pre(one: &[String], other: &[String]) -> Ordering {
    let parts = one.iter().zip(other).map(|(one, other)| match (one.parse::<u64>(), other.parse::<u64>()) {
        (Ok(one), Ok(other)) => one.cmp(&other),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => one.cmp(other),
    });
    parts.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
}
