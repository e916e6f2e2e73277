//! Start lines and headers.

use super::{HttpError, MAX_HEADERS, MAX_START_LINE};

/// Header fields in the order they came, names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(have, _)| *have == name).map(|(_, value)| value)
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether a comma-separated header contains `token`, in any case.
    pub(crate) fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name).flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
    }

    fn parse<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Self, HttpError> {
        let mut headers = Vec::new();
        for line in lines {
            if headers.len() == MAX_HEADERS {
                return Err(HttpError::refused(431, format!("more than {MAX_HEADERS} headers")));
            }
            headers.push(parse_header(line)?);
        }
        Ok(Self(headers))
    }
}

fn parse_header(line: &[u8]) -> Result<(String, String), HttpError> {
    let bad = |why: &str| HttpError::bad(format!("header {:?}: {why}", String::from_utf8_lossy(line)));
    let colon = line.iter().position(|byte| *byte == b':').ok_or_else(|| bad("no colon"))?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    // This also refuses folded lines and spaces before the colon, which proxies read in different ways.
    let name = token(name).ok_or_else(|| bad("the name has forbidden characters"))?;
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(bad("the value has control characters"));
    }
    Ok((name.to_ascii_lowercase(), String::from_utf8_lossy(value).into_owned()))
}

/// A word of RFC 9110: what methods and header names are made of.
fn token(bytes: &[u8]) -> Option<&str> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    (!bytes.is_empty() && bytes.iter().all(fits)).then(|| str::from_utf8(bytes).ok())?
}

/// The start line's parts and the headers of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    /// The target as it came, for the log.
    pub(crate) target: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: Headers,
    pub(crate) keep_alive: bool,
}

impl RequestHead {
    /// Reads what [`super::Wire::head`] returned.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, HttpError> {
        let mut lines = lines(head);
        let start = lines.next().unwrap_or_default();
        if start.len() > MAX_START_LINE {
            return Err(HttpError::refused(414, format!("the request line exceeds {MAX_START_LINE} bytes")));
        }
        let mut parts = start.split(|byte| *byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(HttpError::bad("the request line is not METHOD TARGET VERSION"));
        };
        let method = token(method).ok_or_else(|| HttpError::bad("the method has forbidden characters"))?;
        let is_1_1 = is_http_1_1(version)?;
        let (target, path, query) = parse_target(target)?;
        let headers = Headers::parse(lines)?;
        if is_1_1 && headers.all("host").count() != 1 {
            return Err(HttpError::bad("a request of HTTP/1.1 has exactly one Host header"));
        }
        let keep_alive = keep_alive(is_1_1, &headers);
        Ok(Self { method: method.to_owned(), target, path, query, headers, keep_alive })
    }

    /// The first value of a query parameter, decoded.
    pub(crate) fn parameter(&self, name: &str) -> Result<Option<String>, HttpError> {
        for pair in self.query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if form_decode(key)? == name {
                return form_decode(value).map(Some);
            }
        }
        Ok(None)
    }
}

/// Splits a target into itself, its path (decoded) and its query (as it came).
fn parse_target(target: &[u8]) -> Result<(String, String, String), HttpError> {
    let text = str::from_utf8(target).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    let text =
        text.ok_or_else(|| HttpError::bad("the target has characters that must be percent-encoded"))?;
    let local = match text.strip_prefix("http://") {
        // The form that proxies get; the server need not care for the name in it.
        Some(rest) => rest.find(['/', '?']).map_or("/", |position| &rest[position..]),
        None if text.starts_with('/') || text == "*" => text,
        None => return Err(HttpError::bad(format!("{text:?} is neither a path nor an http URL"))),
    };
    let (path, query) = local.split_once('?').unwrap_or((local, ""));
    Ok((text.to_owned(), percent_decode(path)?, query.to_owned()))
}

fn percent_decode(text: &str) -> Result<String, HttpError> {
    let bad = || HttpError::bad(format!("{text:?} is not percent-encoded UTF-8"));
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let high = digit(bytes.next()).ok_or_else(bad)?;
                let low = digit(bytes.next()).ok_or_else(bad)?;
                u8::try_from(high * 16 + low).map_err(|_| bad())?
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).map_err(|_| bad())
}

/// In a query, unlike in a path, a plus is a space.
fn form_decode(text: &str) -> Result<String, HttpError> {
    percent_decode(&text.replace('+', " "))
}

/// Status, reason and headers of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusLine {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
}

impl StatusLine {
    /// Reads what [`super::Wire::head`] returned.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, HttpError> {
        let mut lines = lines(head);
        let start = lines.next().unwrap_or_default();
        let mut parts = start.splitn(3, |byte| *byte == b' ');
        is_http_1_1(parts.next().unwrap_or_default())?;
        let status = parts.next().filter(|digits| digits.len() == 3);
        let status = status.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        let status = status
            .filter(|status| (100..600).contains(status))
            .ok_or_else(|| HttpError::bad("the status line has no status code"))?;
        Ok(Self { status, headers: Headers::parse(lines)? })
    }
}

fn is_http_1_1(version: &[u8]) -> Result<bool, HttpError> {
    match version {
        b"HTTP/1.1" => Ok(true),
        b"HTTP/1.0" => Ok(false),
        other if other.starts_with(b"HTTP/") => {
            Err(HttpError::refused(505, "only HTTP/1.0 and HTTP/1.1 are spoken"))
        }
        _ => Err(HttpError::bad("this is not HTTP")),
    }
}

fn keep_alive(is_1_1: bool, headers: &Headers) -> bool {
    if is_1_1 {
        !headers.has_token("connection", "close")
    } else {
        headers.has_token("connection", "keep-alive")
    }
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(head);
    std::iter::from_fn(move || {
        let current = rest?;
        match current.windows(2).position(|pair| pair == b"\r\n") {
            Some(end) => rest = Some(&current[end + 2..]),
            None => rest = None,
        }
        Some(&current[..current.len() - rest.map_or(0, |rest| rest.len() + 2)])
    })
}
