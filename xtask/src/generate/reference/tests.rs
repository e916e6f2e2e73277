use clap::{Arg, Command};

use super::{commands, metrics, values};

#[test]
fn a_value_has_the_comment_above_it_and_the_default_below_it() {
    let text = "\
image:
  # -- Where it is,
  # really.
  name: liqo

pod:
  # -- What it may use.
  resources:
    limits:
      cpu: \"1\"
  plain: 1
  # not for the reference
  # -- A list.
  tolerations: []
";
    let found: Vec<_> =
        values::values(text).into_iter().map(|value| (value.path, value.default, value.about)).collect();
    let expected = [
        ("image.name", "liqo", "Where it is, really."),
        ("pod.resources", "limits: cpu: \"1\"", "What it may use."),
        ("pod.tolerations", "[]", "A list."),
    ];
    assert_eq!(found, expected.map(|(path, default, about)| (path.into(), default.into(), about.into())));
}

#[test]
fn a_metric_has_its_prefix_type_and_help() {
    let text = r#"
struct M {
    reapplied: Gauge,
    applied: Family<L, Counter>,
    depth: Gauge,
    took: Histogram,
}
fn register(&self, registry: &mut Registry) {
    let registry = registry.sub_registry_with_prefix("watch");
    registry.register("applied", "Objects new or changed", self.applied.clone());
    registry.register(
        "depth",
        "How many wait",
        self.depth.clone(),
    );
    let help = "How long
        it took";
    registry.register_with_unit("took", help, Unit::Seconds, self.took.clone());
}
fn encode(mut encoder: DescriptorEncoder<'_>) {
    let help = "Until it ends";
    let mut descriptor = encoder.encode_descriptor("left_seconds", help, None, MetricType::Gauge)?;
}"#;
    let found: Vec<_> = metrics::metrics(text).into_iter().map(|m| (m.name, m.kind, m.help)).collect();
    let expected = [
        ("watch_applied_total", "counter", "Objects new or changed"),
        ("watch_depth", "gauge", "How many wait"),
        ("watch_took_seconds", "histogram", "How long it took"),
        ("watch_left_seconds", "gauge", "Until it ends"),
    ];
    assert_eq!(found, expected.map(|(name, kind, help)| (name.to_owned(), kind, help.to_owned())));
}

#[test]
fn hidden_arguments_are_not_told_and_environment_variables_are() {
    let program =
        Command::new("p").arg(Arg::new("seen").long("seen").default_value("1|2").help("What")).subcommand(
            Command::new("c")
                .about("Does")
                .arg(Arg::new("gone").long("gone").hide(true))
                .arg(Arg::new("N").required(true)),
        );
    let page = commands::page(&program, "About.");
    assert_eq!(page.matches("| `--seen seen` | `1\\|2` | What |").count(), 1, "{page}");
    assert_eq!(page.matches("| `--seen").count(), 1, "a command repeats it:\n{page}");
    assert!(page.contains("`p c`") && page.contains("| `N` |"), "{page}");
    assert!(!page.contains("gone"), "{page}");
}
