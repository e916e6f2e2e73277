//! `--reflect`: which custom resources go along.

use liqo_api::namespace_offloading::KindName;

#[cfg(test)]
mod tests;

/// One value of `--reflect`: a kind, or nothing, which means none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted(Option<KindName>);

/// Reads `group/Kind`; an empty text means none.
pub(crate) fn parse_kind(text: &str) -> Result<Wanted, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Wanted(None));
    }
    let Some((group, kind)) = text.split_once('/') else {
        return Err(format!("{text:?} is no kind: say the API group and the kind, as example.com/Widget"));
    };
    let is_kind = kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.chars().all(|it| it.is_ascii_alphanumeric());
    if !is_kind {
        return Err(format!(
            "{kind:?} is no kind: kubectl api-resources --api-group={group} shows them in the column KIND"
        ));
    }
    if !group.contains('.') {
        return Err(format!(
            "{group:?} is a group of Kubernetes itself: only custom resources can be reflected; what pods need goes along by \
             itself"
        ));
    }
    Ok(Wanted(Some(KindName { group: group.to_owned(), kind: kind.to_owned() })))
}

/// The kinds that were said, each once; `None` if nothing was said about them.
pub(crate) fn kinds(wanted: &[Wanted]) -> Option<Vec<KindName>> {
    if wanted.is_empty() {
        return None;
    }
    let mut all: Vec<_> = wanted.iter().filter_map(|it| it.0.clone()).collect();
    all.sort();
    all.dedup();
    Some(all)
}
