use clap::Command;

#[test]
fn the_arguments_are_consistent() {
    crate::command().debug_assert();
}

#[test]
fn every_command_has_examples_and_those_on_a_cluster_say_which() {
    let mut root = crate::command();
    root.build();
    assert!(root.render_long_help().to_string().contains("Exit codes:"));
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        let help = command.clone().render_long_help().to_string();
        assert!(help.contains("Examples:\n"), "{}: {help}", command.get_name());
        let on_cluster = !matches!(command.get_name(), "sandbox" | "completion");
        assert_eq!(help.contains("--kubeconfig"), on_cluster, "{}", command.get_name());
    }
}

#[test]
fn every_example_is_a_command_that_exists() {
    let mut root = crate::command();
    root.build();
    let mut examples = Vec::new();
    collect(&root, &mut examples);
    assert!(examples.len() > 20, "{examples:?}");
    for example in examples {
        let words = example.split_whitespace().skip_while(|word| *word != "liqoctl").skip(1);
        let mut command = &root;
        for word in words.take_while(|word| !word.starts_with(['-', '#', '|', '>', '$'])) {
            match command.find_subcommand(word) {
                Some(found) => command = found,
                None => break,
            }
        }
        assert_ne!(command.get_name(), "liqoctl", "no such command: {example}");
    }
}

/// The lines of all examples that call liqoctl.
fn collect(command: &Command, examples: &mut Vec<String>) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("liqoctl ") || line.starts_with("sudo liqoctl "));
    examples.extend(lines.map(str::to_owned));
    command.get_subcommands().for_each(|command| collect(command, examples));
}
