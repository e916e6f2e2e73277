//! Regular expressions. Go's syntax and ours are both RE2's, and both take time in proportion to the text.

use regex::{NoExpand, Regex, RegexBuilder};

use super::{Answer, Args, Function, plain, semver};
use crate::template::value::Value;

/// Memory of a compiled expression.
const MAX_COMPILED: usize = 1 << 20;

/// What compiling an expression costs, as bytes read: a chart may do it some hundred times.
const COMPILE_COST: usize = 250_000;

pub(super) static TABLE: &[Function] = &[
    plain("regexMatch", 2, 2, |args| Ok(Value::Bool(regex(args)?.is_match(args.text(1)?)))),
    plain("mustRegexMatch", 2, 2, |args| Ok(Value::Bool(regex(args)?.is_match(args.text(1)?)))),
    plain("regexFind", 2, 2, |args| {
        args.give_text(regex(args)?.find(args.text(1)?).map_or("", |found| found.as_str()))
    }),
    plain("regexFindAll", 3, 3, find_all),
    plain("regexReplaceAll", 3, 3, replace_all),
    plain("mustRegexReplaceAll", 3, 3, replace_all),
    plain("regexReplaceAllLiteral", 3, 3, |args| {
        let (regex, text, new) = (regex(args)?, args.text(1)?, args.text(2)?);
        args.budget.make(regex.find_iter(text).count().saturating_mul(new.len()))?;
        args.give_text(regex.replace_all(text, NoExpand(new)))
    }),
    plain("regexSplit", 3, 3, split),
    plain("regexQuoteMeta", 1, 1, |args| args.give_text(regex::escape(args.text(0)?))),
    plain("semverCompare", 2, 2, |args| semver::satisfies(args.text(0)?, args.text(1)?).map(Value::Bool)),
];

fn regex(args: &Args<'_>) -> Result<Regex, String> {
    args.budget.read(COMPILE_COST)?;
    RegexBuilder::new(args.text(0)?).size_limit(MAX_COMPILED).build().map_err(|error| error.to_string())
}

fn replace_all(args: &Args<'_>) -> Answer {
    let (regex, text, new) = (regex(args)?, args.text(1)?, args.text(2)?);
    // Each match can put itself into the new text as often as that names a group, at most every two bytes.
    let matched: usize = regex.find_iter(text).map(|found| new.len() + found.len() * (new.len() / 2)).sum();
    args.budget.make(matched)?;
    args.give_text(regex.replace_all(text, new))
}

/// `regexFindAll regex text n`: the first n matches, or all for a negative n.
fn find_all(args: &Args<'_>) -> Answer {
    let regex = regex(args)?;
    let most = usize::try_from(args.int(2)?).unwrap_or(usize::MAX);
    let text = args.text(1)?;
    args.budget.make(text.len())?;
    args.give_list(regex.find_iter(text).take(most).map(|found| Value::text(found.as_str())).collect())
}

/// `regexSplit regex text n`: at most n parts, or all for a negative n.
fn split(args: &Args<'_>) -> Answer {
    let regex = regex(args)?;
    let most = usize::try_from(args.int(2)?).unwrap_or(usize::MAX);
    let text = args.text(1)?;
    args.budget.make(text.len())?;
    args.give_list(regex.splitn(text, most).map(Value::text).collect())
}
