//! What the server answers: requests in, responses out, no sockets.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::burn::burn;
use crate::client::{Client, Url};
use crate::clock::{milliseconds, parse_duration};
use crate::http::{HttpError, RequestHead};
use crate::json::Json;
use crate::slots::Slots;

/// Longer work belongs into a Job.
const MAX_BURN: Duration = Duration::from_secs(60);
/// More threads than a node of the sandbox has cores; counted over all requests.
const MAX_BURNING_CORES: usize = 16;
/// A peer that is further away than this is down.
const MAX_DIAL_TIMEOUT: Duration = Duration::from_secs(60);
const DEFAULT_DIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// Enough to see who answered.
const MAX_DIAL_BODY: usize = 64 * 1024;

/// Who is answering, from the downward API.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    pub(crate) pod: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) node: Option<String>,
    pub(crate) cluster: Option<String>,
    pub(crate) pod_ip: Option<String>,
}

/// A request that arrived in one piece.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) head: RequestHead,
    pub(crate) body: Vec<u8>,
    pub(crate) peer: IpAddr,
}

/// What goes back, and what happens after.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Json,
    /// The methods that would have been right.
    pub(crate) allow: Option<&'static str>,
    /// The program ends with this code once the response is sent.
    pub(crate) exit: Option<u8>,
}

impl Response {
    pub(crate) fn new(status: u16, body: Json) -> Self {
        Self { status, body, allow: None, exit: None }
    }

    pub(crate) fn error(status: u16, why: impl Into<String>) -> Self {
        Self::new(status, Json::object([("error", Json::Text(why.into()))]))
    }
}

/// The server's state.
#[derive(Debug)]
pub(crate) struct App {
    identity: Identity,
    client: Client,
    burning: Slots,
    unhealthy: AtomicBool,
    answered: AtomicU64,
    started: Instant,
}

impl App {
    pub(crate) fn new(identity: Identity) -> Self {
        Self {
            identity,
            client: Client::new(),
            burning: Slots::new(MAX_BURNING_CORES),
            unhealthy: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    pub(crate) fn answer(&self, request: &Request) -> Response {
        self.answered.fetch_add(1, Ordering::Relaxed);
        match self.route(request) {
            Ok(response) => response,
            Err(HttpError::Refused { status, why }) => Response::error(status, why),
            Err(error) => Response::error(500, error.to_string()),
        }
    }

    fn route(&self, request: &Request) -> Result<Response, HttpError> {
        const READ: &str = "GET, HEAD";
        const ACT: &str = "GET, HEAD, POST";
        let method = request.head.method.as_str();
        let allowed = match request.head.path.as_str() {
            "/echo" => None,
            "/" | "/dial" => Some(READ),
            "/healthz" | "/burn" | "/stop" => Some(ACT),
            path => return Ok(Response::error(404, format!("there is nothing at {path:?}"))),
        };
        if let Some(allow) = allowed.filter(|methods| !methods.split(", ").any(|allowed| allowed == method)) {
            let why = format!("{method} is not allowed here, {allow} are");
            return Ok(Response { allow: Some(allow), ..Response::error(405, why) });
        }
        match request.head.path.as_str() {
            "/echo" => Ok(Response::new(200, echo(request))),
            "/healthz" => self.health(&request.head),
            "/burn" => self.burn(&request.head),
            "/dial" => self.dial(&request.head),
            "/stop" => stop(&request.head),
            _ => Ok(Response::new(200, self.describe(request))),
        }
    }

    fn describe(&self, request: &Request) -> Json {
        let text = |value: &Option<String>| Json::from(value.as_deref());
        let head = &request.head;
        Json::object([
            ("app", "sandbox-app".into()),
            ("cluster", text(&self.identity.cluster)),
            ("node", text(&self.identity.node)),
            ("namespace", text(&self.identity.namespace)),
            ("pod", text(&self.identity.pod)),
            ("podIP", text(&self.identity.pod_ip)),
            ("uptimeMs", milliseconds(self.started.elapsed()).into()),
            ("requests", self.answered.load(Ordering::Relaxed).into()),
            (
                "request",
                Json::object([
                    ("method", head.method.as_str().into()),
                    ("path", head.path.as_str().into()),
                    ("query", head.query.as_str().into()),
                    ("host", head.headers.get("host").into()),
                    ("peer", request.peer.to_string().into()),
                ]),
            ),
        ])
    }

    /// POST switches, GET tells; a readiness probe sees 503 while it is switched to fail.
    fn health(&self, head: &RequestHead) -> Result<Response, HttpError> {
        if head.method == "POST" {
            let fail = match head.parameter("fail")?.as_deref() {
                Some("true") => true,
                Some("false") => false,
                _ => return Err(HttpError::refused(400, "POST /healthz needs fail=true or fail=false")),
            };
            self.unhealthy.store(fail, Ordering::Release);
            return Ok(Response::new(200, Json::object([("healthy", (!fail).into())])));
        }
        let healthy = !self.unhealthy.load(Ordering::Acquire);
        Ok(Response::new(if healthy { 200 } else { 503 }, Json::object([("healthy", healthy.into())])))
    }

    fn burn(&self, head: &RequestHead) -> Result<Response, HttpError> {
        let cores = number(head, "cores", 1)?;
        let ms = number(head, "ms", 500)?;
        let limit = milliseconds(MAX_BURN);
        if ms > limit || !(1..=MAX_BURNING_CORES as u64).contains(&cores) {
            let why = format!("burn at most ms={limit} on cores=1 to {MAX_BURNING_CORES}");
            return Err(HttpError::refused(400, why));
        }
        // Lossless: compared with the limit above.
        let cores = cores as usize;
        let Some(_slot) = self.burning.take(cores) else {
            let why = format!("{} of {MAX_BURNING_CORES} cores burn already", self.burning.used());
            return Err(HttpError::refused(429, why));
        };
        let started = Instant::now();
        burn(cores, Duration::from_millis(ms));
        let burned = milliseconds(started.elapsed());
        Ok(Response::new(200, Json::object([("burnedMs", burned.into()), ("cores", (cores as u64).into())])))
    }

    /// 502 when there is no answer, so that a plain client sees the failure too; otherwise 200, whatever came back.
    fn dial(&self, head: &RequestHead) -> Result<Response, HttpError> {
        let bad = |why: String| HttpError::refused(400, why);
        let url =
            head.parameter("url")?.ok_or_else(|| bad("/dial needs url=http://host:port/path".into()))?;
        let url = Url::parse(&url).map_err(bad)?;
        let timeout = match head.parameter("timeout")? {
            Some(text) => parse_duration(&text).map_err(bad)?,
            None => DEFAULT_DIAL_TIMEOUT,
        };
        if timeout > MAX_DIAL_TIMEOUT {
            return Err(bad(format!("the timeout is longer than {} s", MAX_DIAL_TIMEOUT.as_secs())));
        }
        let started = Instant::now();
        let result = self.client.get(&url, timeout, MAX_DIAL_BODY);
        let elapsed = Json::from(milliseconds(started.elapsed()));
        let url = Json::from(url.to_string());
        Ok(match result {
            Ok(answer) => Response::new(
                200,
                Json::object([
                    ("url", url),
                    ("status", u64::from(answer.status).into()),
                    ("elapsedMs", elapsed),
                    ("truncated", answer.truncated.into()),
                    ("body", String::from_utf8_lossy(&answer.body).into_owned().into()),
                ]),
            ),
            Err(error) => Response::new(
                502,
                Json::object([("url", url), ("elapsedMs", elapsed), ("error", error.to_string().into())]),
            ),
        })
    }
}

fn echo(request: &Request) -> Json {
    let mut headers: Vec<(String, Json)> = Vec::new();
    for (name, value) in request.head.headers.iter() {
        match headers.iter_mut().find(|(have, _)| have == name) {
            Some((_, Json::Text(values))) => {
                values.push_str(", ");
                values.push_str(value);
            }
            _ => headers.push((name.to_owned(), value.into())),
        }
    }
    Json::object([
        ("method", request.head.method.as_str().into()),
        ("path", request.head.path.as_str().into()),
        ("query", request.head.query.as_str().into()),
        ("headers", Json::Object(headers)),
        ("bodyBytes", (request.body.len() as u64).into()),
        ("body", String::from_utf8_lossy(&request.body).into_owned().into()),
    ])
}

fn stop(head: &RequestHead) -> Result<Response, HttpError> {
    let code = u8::try_from(number(head, "code", 0)?)
        .map_err(|_| HttpError::refused(400, "an exit code is a number from 0 to 255"))?;
    let body = Json::object([("stopping", true.into()), ("code", u64::from(code).into())]);
    Ok(Response { exit: Some(code), ..Response::new(200, body) })
}

fn number(head: &RequestHead, name: &str, default: u64) -> Result<u64, HttpError> {
    let Some(text) = head.parameter(name)? else { return Ok(default) };
    text.parse().map_err(|_| HttpError::refused(400, format!("{name}={text:?} is not a whole number")))
}

#[cfg(test)]
mod tests;
