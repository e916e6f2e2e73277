//! `.helmignore`: files that are beside a chart but not part of it.

use super::{ChartFiles, wrong_file};
use crate::error::ChartError;
use crate::glob::Glob;

const FILE: &str = ".helmignore";

/// What an editor or a system leaves among the templates, which no chart means.
const ALWAYS: &str = "templates/.?*";

/// One line of the file.
struct Rule {
    glob: Glob,
    /// Whether it only names directories.
    directory: bool,
    /// Whether it is matched with the last part of a path instead of all of it.
    name_only: bool,
    /// Whether it names what is kept, and all else goes.
    negated: bool,
}

/// Leaves out what the chart's `.helmignore` names.
pub(super) fn filter(files: ChartFiles) -> Result<ChartFiles, ChartError> {
    let text = files.get(FILE).map(|content| String::from_utf8_lossy(content).into_owned());
    let lines = text.iter().flat_map(|text| text.lines()).chain([ALWAYS]);
    let rules = lines
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| Rule::read(line).map_err(|reason| wrong_file(FILE, &reason)))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(files.into_iter().filter(|(path, _)| !is_ignored(path, &rules)).collect())
}

impl Rule {
    fn read(line: &str) -> Result<Self, String> {
        if line.contains("**") {
            return Err(format!("{line:?}: ** is not supported there"));
        }
        let (negated, line) = line.strip_prefix('!').map_or((false, line), |line| (true, line));
        let (directory, line) = line.strip_suffix('/').map_or((false, line), |line| (true, line));
        let name_only = !line.contains('/');
        let glob = Glob::new(line.strip_prefix('/').unwrap_or(line))?;
        Ok(Self { glob, directory, name_only, negated })
    }

    fn names(&self, path: &str, is_directory: bool) -> bool {
        if self.directory && !is_directory {
            return self.negated;
        }
        let subject = if self.name_only { path.rsplit('/').next().unwrap_or(path) } else { path };
        self.glob.matches(subject) != self.negated
    }
}

/// A file goes with any directory above it.
fn is_ignored(path: &str, rules: &[Rule]) -> bool {
    let above = path.match_indices('/').map(|(at, _)| (&path[..at], true));
    above.chain([(path, false)]).any(|(path, directory)| rules.iter().any(|rule| rule.names(path, directory)))
}
