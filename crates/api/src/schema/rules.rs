//! Rules that more than one kind has.

use kube::core::Rule;

use super::resources::is_quantity;

/// A required field that keeps the value it was created with.
pub(crate) fn immutable(message: &str) -> Rule {
    Rule::new("self == oldSelf").message(message)
}

/// A path of optional fields that may be filled in once and then stays.
///
/// Goes on the object that the path starts from, because a rule on the field itself is not evaluated when the
/// field is removed.
pub(crate) fn set_once(path: &[&str], message: &str) -> Rule {
    let present = |root: &str| {
        (1..=path.len())
            .map(|depth| format!("has({root}.{})", path[..depth].join(".")))
            .collect::<Vec<_>>()
            .join(" && ")
    };
    let path_text = path.join(".");
    let rule = format!(
        "!({old}) || ({new} && self.{path_text} == oldSelf.{path_text})",
        old = present("oldSelf"),
        new = present("self"),
    );
    Rule::new(rule).message(message).field_path(format!(".{path_text}"))
}

/// Two networks of one cluster must not contain each other.
pub(crate) fn disjoint(one: &str, other: &str) -> Rule {
    let (a, b) = (format!("self.{one}"), format!("self.{other}"));
    Rule::new(format!(
        "!isCIDR({a}) || !isCIDR({b}) || (!cidr({a}).containsCIDR({b}) && !cidr({b}).containsCIDR({a}))"
    ))
    .message(format!("{one} and {other} must not overlap").as_str())
    .field_path(format!(".{other}"))
}

/// Of the resources in both lists, the amounts of one must not be above those of the other. What is no amount is for
/// another rule to complain about.
pub(crate) fn no_more_than(smaller: &str, larger: &str, message: &str) -> Rule {
    let (less, more) = (format!("string(self.{smaller}[name])"), format!("string(self.{larger}[name])"));
    Rule::new(format!(
        "!has(self.{smaller}) || !has(self.{larger}) || self.{smaller}.all(name, !(name in self.{larger}) || \
         !({}) || !({}) || !quantity({less}).isGreaterThan(quantity({more})))",
        is_quantity(&less),
        is_quantity(&more),
    ))
    .message(message)
    .field_path(format!(".{smaller}"))
}
