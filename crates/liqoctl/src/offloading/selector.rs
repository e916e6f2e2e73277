//! Selectors as kubectl's users type them: `tier=gold,zone in (a,b),!spot,cores>4`.

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use liqo_offloading::selector;

#[cfg(test)]
mod tests;

/// One alternative: requirements all of which must hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Term(pub(crate) Vec<NodeSelectorRequirement>);

/// Labels that clusters must have, or must not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pairs(Vec<(String, String)>);

/// Reads one alternative.
pub(crate) fn parse_term(text: &str) -> Result<Term, String> {
    let parts = split(text)?;
    let term: Result<Vec<_>, _> = parts.into_iter().map(requirement).collect();
    let term = NodeSelectorTerm { match_expressions: Some(term?), match_fields: None };
    if term.match_expressions.as_ref().is_some_and(|all| !all.is_empty()) {
        let checked = NodeSelector { node_selector_terms: vec![term.clone()] };
        selector::check(Some(&checked)).map_err(|error| error.to_string())?;
    }
    Ok(Term(term.match_expressions.unwrap_or_default()))
}

/// Reads `key=value,key=value`.
pub(crate) fn parse_pairs(text: &str) -> Result<Pairs, String> {
    let pair = |part: &str| match part.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("{part:?} is no label: expected key=value")),
    };
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(pair)
        .collect::<Result<_, _>>()
        .map(Pairs)
}

/// The selector that all of it means: one of the alternatives, with these labels and without those; nothing if all clusters
/// are meant.
pub(crate) fn combine(terms: &[Term], accepted: &[Pairs], denied: &[Pairs]) -> Option<NodeSelector> {
    let one = |operator: &str, key: &str, value: &str| NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: Some(vec![value.to_owned()]),
    };
    let all = |operator, pairs: &[Pairs]| -> Vec<_> {
        pairs.iter().flat_map(|pairs| &pairs.0).map(|(key, value)| one(operator, key, value)).collect()
    };
    let common = [all("In", accepted), all("NotIn", denied)].concat();
    let alternatives: Vec<_> =
        terms.iter().map(|term| term.0.clone()).filter(|term| !term.is_empty()).collect();
    let alternatives = if alternatives.is_empty() { vec![Vec::new()] } else { alternatives };
    let terms: Vec<_> = alternatives
        .into_iter()
        .map(|own| [own, common.clone()].concat())
        .filter(|all| !all.is_empty())
        .map(|all| NodeSelectorTerm { match_expressions: Some(all), match_fields: None })
        .collect();
    (!terms.is_empty()).then_some(NodeSelector { node_selector_terms: terms })
}

/// Splits at commas that are not in parentheses.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' if inside => return Err(format!("{text:?} has a parenthesis in another one")),
            '(' => inside = true,
            ')' if !inside => return Err(format!("{text:?} has a closing parenthesis too many")),
            ')' => inside = false,
            ',' if !inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(format!("{text:?} has a parenthesis that is not closed"));
    }
    parts.push(&text[start..]);
    Ok(parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect())
}

fn requirement(part: &str) -> Result<NodeSelectorRequirement, String> {
    let wrong = || {
        format!(
            "{part:?} is no requirement: expected key=value, key!=value, key in (a,b), key notin (a,b), key, !key, key>1 or key<1"
        )
    };
    let make = |key: &str, operator: &str, values: Vec<&str>| {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(legal) {
            return Err(wrong());
        }
        let values: Vec<_> = values.into_iter().map(|value| value.trim().to_owned()).collect();
        let values = (!values.is_empty()).then_some(values);
        Ok(NodeSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values })
    };
    if let Some(list) = part.strip_suffix(')') {
        let (before, list) = list.split_once('(').ok_or_else(wrong)?;
        let mut words = before.split_whitespace();
        let (Some(key), Some(operator), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong());
        };
        let operator = match operator {
            "in" => "In",
            "notin" => "NotIn",
            _ => return Err(wrong()),
        };
        return make(key, operator, list.split(',').collect());
    }
    if let Some((key, value)) = part.split_once("!=") {
        return make(key, "NotIn", vec![value]);
    }
    for (sign, operator) in [("==", "In"), ("=", "In"), (">", "Gt"), ("<", "Lt")] {
        if let Some((key, value)) = part.split_once(sign) {
            return make(key, operator, vec![value]);
        }
    }
    match part.strip_prefix('!') {
        Some(key) => make(key, "DoesNotExist", Vec::new()),
        None => make(part, "Exists", Vec::new()),
    }
}
