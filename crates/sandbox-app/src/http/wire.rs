//! Bytes from a connection, buffered, with limits and a deadline.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::HttpError;

const READ_SIZE: usize = 8 * 1024;

/// A socket whose reads and writes all end by one point in time.
///
/// A timeout per read alone would let a peer that sends a byte now and then hold on for ever.
#[derive(Debug)]
pub(crate) struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

impl Timed {
    pub(crate) fn new(stream: TcpStream, deadline: Instant) -> Self {
        Self { stream, deadline }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn end_after(&mut self, timeout: Duration) {
        self.deadline = Instant::now() + timeout;
    }

    fn remaining(&self) -> io::Result<Option<Duration>> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(remaining)) }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.remaining()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.remaining()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A buffered reader that cuts lines, heads and counted bytes off a stream.
#[derive(Debug)]
pub(crate) struct Wire<R> {
    inner: R,
    buffer: Vec<u8>,
}

impl<R: Read> Wire<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, buffer: Vec::new() }
    }

    pub(crate) fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Waits for the first byte of the next message; false when the peer is done.
    pub(crate) fn has_more(&mut self) -> Result<bool, HttpError> {
        Ok(!self.buffer.is_empty() || self.fill()? > 0)
    }

    /// The start line and headers up to the empty line, without it.
    pub(crate) fn head(&mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        // Empty lines before a message are left over from careless clients; the limit counts them too.
        let mut skipped = 0;
        while self.starts_with_line_end()? {
            self.buffer.drain(..2);
            skipped += 2;
            if skipped > limit {
                return Err(HttpError::bad("nothing but empty lines"));
            }
        }
        let too_large = || HttpError::refused(431, format!("the headers exceed {limit} bytes"));
        let mut head = self.until(b"\r\n\r\n", limit, too_large)?;
        head.truncate(head.len() - 4);
        Ok(head)
    }

    /// One line without its end.
    pub(crate) fn line(&mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        let mut line =
            self.until(b"\r\n", limit, || HttpError::bad("a line of a chunked body is too long"))?;
        line.truncate(line.len() - 2);
        Ok(line)
    }

    /// Appends exactly `count` bytes to `target`.
    pub(crate) fn exactly(&mut self, count: usize, target: &mut Vec<u8>) -> Result<(), HttpError> {
        let mut missing = count;
        while missing > 0 {
            if self.buffer.is_empty() && self.fill()? == 0 {
                return Err(HttpError::Closed);
            }
            let part = missing.min(self.buffer.len());
            target.extend(self.buffer.drain(..part));
            missing -= part;
        }
        Ok(())
    }

    /// Everything until the peer closes; false when there was more than `limit` bytes.
    pub(crate) fn rest(&mut self, limit: usize, target: &mut Vec<u8>) -> Result<bool, HttpError> {
        while target.len() <= limit && (!self.buffer.is_empty() || self.fill()? > 0) {
            target.append(&mut self.buffer);
        }
        let complete = target.len() <= limit;
        target.truncate(limit);
        Ok(complete)
    }

    fn starts_with_line_end(&mut self) -> Result<bool, HttpError> {
        while self.buffer.len() < 2 {
            if self.fill()? == 0 {
                return Err(HttpError::Closed);
            }
        }
        Ok(self.buffer.starts_with(b"\r\n"))
    }

    /// Cuts off everything up to and including `end`.
    fn until(
        &mut self,
        end: &[u8],
        limit: usize,
        too_long: impl Fn() -> HttpError,
    ) -> Result<Vec<u8>, HttpError> {
        let mut searched = 0;
        loop {
            let found = self.buffer[searched..].windows(end.len()).position(|window| window == end);
            match found.map(|position| searched + position + end.len()) {
                Some(length) if length <= limit => return Ok(self.buffer.drain(..length).collect()),
                Some(_) => return Err(too_long()),
                None if self.buffer.len() > limit => return Err(too_long()),
                None => {}
            }
            // What has been looked at is not looked at again, so that a head sent byte by byte costs no more.
            searched = self.buffer.len().saturating_sub(end.len() - 1);
            if self.fill()? == 0 {
                return Err(HttpError::Closed);
            }
        }
    }

    fn fill(&mut self) -> Result<usize, HttpError> {
        let held = self.buffer.len();
        self.buffer.resize(held + READ_SIZE, 0);
        let result = loop {
            match self.inner.read(&mut self.buffer[held..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.buffer.truncate(held + result.as_ref().map_or(0, |count| *count));
        Ok(result?)
    }
}
