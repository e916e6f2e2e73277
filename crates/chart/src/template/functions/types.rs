//! What kind of value a value is.

use super::{Answer, Args, Function, plain};
use crate::template::value::Value;

pub(super) static TABLE: &[Function] = &[
    plain("kindOf", 1, 1, |args| Ok(Value::text(args.get(0).kind()))),
    plain("kindIs", 2, 2, kind_is),
    plain("typeOf", 1, 1, |args| Ok(Value::text(args.get(0).type_name()))),
    plain("typeIs", 2, 2, |args| Ok(Value::Bool(args.text(0)? == args.get(1).type_name()))),
    plain("typeIsLike", 2, 2, |args| {
        Ok(Value::Bool(args.text(0)?.trim_start_matches('*') == args.get(1).type_name()))
    }),
];

/// Go has whole numbers of several sizes, here they are one; so an `int` is an `int64` as well.
fn kind_is(args: &Args<'_>) -> Answer {
    let (asked, kind) = (args.text(0)?, args.get(1).kind());
    Ok(Value::Bool(asked == kind || (kind == "int" && asked == "int64")))
}
