use super::*;

const FILE: &str = "
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: 'https://one.example:6443'}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: one, context: {cluster: c, user: u}}
- {name: two, context: {cluster: c, user: u}}
";

/// A home of the test's own, gone with the value.
struct Home(PathBuf);

impl Home {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("liqoctl-access-{test}-{}", std::process::id()));
        std::fs::create_dir_all(path.join(".kube")).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn environment(&self) -> Environment {
        Environment {
            home: Some(self.0.clone()),
            sandbox_name: "default".into(),
            sandbox_dir: self.0.join("sandboxes"),
            ..Environment::default()
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

async fn target(environment: &Environment, flags: &Flags) -> Result<String, String> {
    let chosen = kubeconfig::choose(environment, flags).map_err(|error| error.to_string())?;
    let (_, target) = chosen.load(&environment.proxy).await.map_err(|error| error.to_string())?;
    Ok(target.to_string())
}

#[tokio::test]
async fn the_file_at_home_is_used_with_its_current_context_or_the_one_asked_for() {
    let home = Home::new("home");
    let file = home.write(".kube/config", FILE).display().to_string();
    let said = target(&home.environment(), &Flags::default()).await.unwrap();
    assert_eq!(said, format!("https://one.example:6443 (context one of {file})"));
    let two = Flags { context: Some("two".into()), ..Flags::default() };
    assert!(target(&home.environment(), &two).await.unwrap().contains("context two of"));
    let three = Flags { context: Some("three".into()), ..Flags::default() };
    let said = target(&home.environment(), &three).await.unwrap_err();
    assert!(said.contains("no context \"three\"") && said.ends_with("It has: one, two"), "{said}");
}

#[tokio::test]
async fn several_files_are_merged_and_missing_ones_skipped() {
    let home = Home::new("several");
    let first = home.write("first", "{clusters: [], contexts: [], users: [], current-context: two}");
    let second = home.write("second", FILE);
    let list = std::env::join_paths([&first, &home.0.join("missing"), &second]).unwrap();
    let environment = Environment { kubeconfig: Some(list), ..home.environment() };
    let said = target(&environment, &Flags::default()).await.unwrap();
    assert!(said.contains("context two of"), "the first one's choice: {said}");
    let empty = Environment { kubeconfig: Some(OsString::new()), ..home.environment() };
    assert!(
        target(&empty, &Flags::default()).await.unwrap_err().contains(".kube/config"),
        "as if it were not set"
    );
}

#[tokio::test]
async fn a_file_that_was_named_must_be_there_and_be_right() {
    let home = Home::new("named");
    home.write(".kube/config", FILE);
    for (text, expected) in [
        (None, "No such file"),
        (Some("clusters: ["), "cannot use"),
        (Some("{}"), "has no current context"),
        (Some("{current-context: gone}"), "no context \"gone\""),
    ] {
        let path = home.0.join("named");
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let flags = Flags { kubeconfig: Some(path.clone()), ..Flags::default() };
        let said = target(&home.environment(), &flags).await.unwrap_err();
        assert!(said.contains(expected) && said.contains(&path.display().to_string()), "{text:?}: {said}");
    }
}

#[tokio::test]
async fn without_any_kubeconfig_the_message_says_how_to_get_one() {
    let home = Home::new("none");
    let said = target(&home.environment(), &Flags::default()).await.unwrap_err();
    for expected in [".kube/config", "--kubeconfig", "$KUBECONFIG", "liqoctl sandbox up"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let flags = Flags { context: Some("provider-a".into()), ..Flags::default() };
    let said = target(&home.environment(), &flags).await.unwrap_err();
    assert!(said.contains("no running sandbox has a cluster \"provider-a\""), "{said}");
}

#[test]
fn flags_after_the_command_count_more_than_those_before_it() {
    let before = Flags { namespace: Some("a".into()), verbose: 1, ..Flags::default() };
    let both = before.then(Flags { namespace: Some("b".into()), verbose: 1, ..Flags::default() });
    assert_eq!((both.namespace.as_deref(), both.verbose), (Some("b"), 2));
    assert_eq!(before.then(Flags::default()).namespace.as_deref(), Some("a"));
}

#[test]
fn no_color_and_a_dumb_terminal_are_respected_unless_colours_are_asked_for() {
    let colour = |environment: Environment, colour| {
        Access { environment, flags: Flags { colour, ..Flags::default() } }.colour()
    };
    let no_color = |value: &str| Environment { no_color: Some(value.into()), ..Environment::default() };
    assert_eq!(colour(Environment::default(), None), Colour::Auto);
    assert_eq!(colour(no_color("1"), None), Colour::Never);
    assert_eq!(colour(no_color(""), None), Colour::Auto, "an empty value means nothing");
    assert_eq!(colour(no_color("1"), Some(Colour::Always)), Colour::Always);
    let dumb = Environment { term: Some("dumb".into()), ..Environment::default() };
    assert_eq!(colour(dumb, Some(Colour::Auto)), Colour::Never);
}

#[test]
fn flags_are_found_in_a_command_that_is_still_being_typed() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let flags = Flags::of_words(&words("peer --context a -n=x --kubeconfig f --context=b mi"));
    assert_eq!((flags.context.as_deref(), flags.namespace.as_deref()), (Some("b"), Some("x")));
    assert_eq!(flags.kubeconfig, Some("f".into()));
    assert_eq!(Flags::of_words(&words("peer --context")).context, None);
}
