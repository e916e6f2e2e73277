use super::*;
use crate::style::Colour;

fn written(work: impl FnOnce(&mut Progress<&mut Vec<u8>>), style: Style) -> String {
    let mut out = Vec::new();
    work(&mut Progress::to(style, &mut out));
    String::from_utf8(out).unwrap()
}

#[test]
fn without_a_terminal_only_ends_are_written() {
    let said = written(
        |progress| {
            progress.busy("waiting for the pod");
            progress.done("the pod is ready");
            progress.failed("no quota");
            progress.detail("in namespace liqo\nask for more");
        },
        Style::plain(),
    );
    assert_eq!(said, "✓ the pod is ready\n✗ no quota\n    in namespace liqo\n    ask for more\n");
}

#[test]
fn on_a_terminal_the_end_replaces_what_was_under_way_and_the_last_line_is_ended() {
    let pty = nix::pty::openpty(None, None).unwrap();
    let style = Style::of(&pty.slave, Colour::Never);
    let said = written(
        |progress| {
            progress.busy("one");
            progress.warn("two");
            progress.busy("three");
        },
        style,
    );
    assert_eq!(said, "\r\x1b[2K… one\r\x1b[2K! two\n\r\x1b[2K… three\n");
}
