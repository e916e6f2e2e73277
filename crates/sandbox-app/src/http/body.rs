//! Where a message's body ends, and reading it.

use std::io::Read;

use super::{Headers, HttpError, Wire};

/// A chunk's size in hexadecimal with extensions that nobody uses.
const MAX_CHUNK_LINE: usize = 256;
/// Trailers are read and forgotten.
const MAX_TRAILERS: usize = 64;

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Empty,
    Length(u64),
    Chunked,
    UntilClose,
}

impl Framing {
    /// A request without a length has no body.
    pub(crate) fn of_request(headers: &Headers) -> Result<Self, HttpError> {
        Ok(Self::declared(headers)?.unwrap_or(Self::Empty))
    }

    /// A response without a length lasts until the connection ends.
    pub(crate) fn of_response(status: u16, headers: &Headers) -> Result<Self, HttpError> {
        if status < 200 || status == 204 || status == 304 {
            return Ok(Self::Empty);
        }
        Ok(Self::declared(headers)?.unwrap_or(Self::UntilClose))
    }

    fn declared(headers: &Headers) -> Result<Option<Self>, HttpError> {
        let encodings: Vec<_> = headers.all("transfer-encoding").collect();
        let lengths: Vec<_> = headers.all("content-length").collect();
        match (encodings.as_slice(), lengths.as_slice()) {
            ([], []) => Ok(None),
            // Two readers that choose differently between the two see two different requests.
            ([_, ..], [_, ..]) => Err(HttpError::bad("both Content-Length and Transfer-Encoding are set")),
            ([encoding], []) if encoding.eq_ignore_ascii_case("chunked") => Ok(Some(Self::Chunked)),
            (_, []) => Err(HttpError::refused(501, "the only transfer encoding understood is chunked")),
            ([], [length]) => parse_length(length).map(|length| Some(Self::Length(length))),
            ([], _) => Err(HttpError::bad("more than one Content-Length is set")),
        }
    }
}

/// Digits only: Rust's own parser would also take a sign.
fn parse_length(text: &str) -> Result<u64, HttpError> {
    let digits = Some(text).filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| HttpError::bad(format!("Content-Length {text:?} is not a number of bytes")))
}

/// Reads a body of at most `limit` bytes; false when it is longer, and then what follows is unknown.
pub(crate) fn read_body<R: Read>(
    wire: &mut Wire<R>,
    framing: Framing,
    limit: usize,
) -> Result<(Vec<u8>, bool), HttpError> {
    let mut body = Vec::new();
    let complete = match framing {
        Framing::Empty => true,
        Framing::Length(length) => {
            let wanted = usize::try_from(length).unwrap_or(usize::MAX);
            wire.exactly(wanted.min(limit), &mut body)?;
            wanted <= limit
        }
        Framing::Chunked => read_chunks(wire, limit, &mut body)?,
        Framing::UntilClose => wire.rest(limit, &mut body)?,
    };
    Ok((body, complete))
}

fn read_chunks<R: Read>(wire: &mut Wire<R>, limit: usize, body: &mut Vec<u8>) -> Result<bool, HttpError> {
    loop {
        let size = parse_chunk_size(&wire.line(MAX_CHUNK_LINE)?)?;
        if size == 0 {
            skip_trailers(wire)?;
            return Ok(true);
        }
        let room = limit - body.len();
        wire.exactly(size.min(room), body)?;
        if size > room {
            return Ok(false);
        }
        if !wire.line(MAX_CHUNK_LINE)?.is_empty() {
            return Err(HttpError::bad("a chunk is longer than its size says"));
        }
    }
}

fn parse_chunk_size(line: &[u8]) -> Result<usize, HttpError> {
    let bad = || HttpError::bad(format!("{:?} is not the size of a chunk", String::from_utf8_lossy(line)));
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(bad());
    }
    let digits = str::from_utf8(digits).map_err(|_| bad())?;
    usize::from_str_radix(digits, 16).map_err(|_| bad())
}

fn skip_trailers<R: Read>(wire: &mut Wire<R>) -> Result<(), HttpError> {
    for _ in 0..MAX_TRAILERS {
        if wire.line(MAX_CHUNK_LINE)?.is_empty() {
            return Ok(());
        }
    }
    Err(HttpError::refused(431, format!("more than {MAX_TRAILERS} trailers")))
}
