//! All that is logged, at every level.

use std::io::Write;
use std::sync::Arc;

use parking_lot::Mutex;

#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Keeps what this process logs from now on.
    pub(crate) fn start() -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            // What the libraries below say about each frame would only take time.
            .with_env_filter("trace,h2=info,hyper=info,rustls=info,tower=info")
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .init();
        log
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
