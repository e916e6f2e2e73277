use std::sync::Arc;

use parking_lot::Mutex;

use super::*;

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn logged(format: LogFormat) -> String {
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let subscriber = subscriber(format, "info,quiet=error", false, move || writer.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!(pods = 3, "synced");
        tracing::debug!("too much detail");
        tracing::info!(target: "quiet", "not wanted");
    });
    let bytes = buffer.0.lock().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn json_lines_are_json_and_plain_lines_are_readable_and_both_are_filtered() {
    let text = logged(LogFormat::Json);
    let line: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
    assert_eq!(
        (&line["message"], &line["pods"], &line["level"]),
        (&"synced".into(), &3.into(), &"INFO".into())
    );
    let text = logged(LogFormat::Plain);
    assert!(text.contains("INFO") && text.contains("synced pods=3") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_wrong_filter_or_format_is_explained() {
    let error = init(LogFormat::Plain, "info,[=nonsense").unwrap_err().to_string();
    assert!(error.contains("info,liqo_kit=debug"), "{error}");
    assert_eq!("json".parse(), Ok(LogFormat::Json));
    assert!("yaml".parse::<LogFormat>().unwrap_err().contains("plain or json"));
}
