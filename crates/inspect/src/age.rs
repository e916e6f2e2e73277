//! Ages as kubectl shows them: `42s`, `5m`, `3h`, `12d`.

use jiff::SignedDuration;

/// A short text for an age; of what lies in the future, none is older than now.
pub fn text(age: SignedDuration) -> String {
    let seconds = age.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
