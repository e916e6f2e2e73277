//! The command line and the environment.

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use crate::client::{Client, Url};
use crate::clock::parse_duration;
use crate::routes::{App, Identity};
use crate::server::{Listen, Server, log};
use crate::signals::Termination;

const HELP: &str = "\
A small HTTP server and client for the sandbox's pods.

sandbox-app [serve] [--listen ADDRESS]      serve HTTP (default :8080, or :$PORT)
sandbox-app get URL [--timeout 5s] [--retry 0]
                                            print what is there; fails unless the status is 200
sandbox-app sleep DURATION                  do nothing for a while
sandbox-app exit CODE                       end with that code
sandbox-app note FILE TEXT                  add a line to a file, and print all of it
sandbox-app --help | --version

The server answers with JSON:
  GET  /                                    who answers: cluster, node, namespace, pod, address
  any  /echo                                the request itself
  GET  /healthz                             200, or 503 after POST /healthz?fail=true
  GET  /burn?ms=500&cores=1                 use up CPU, at most 60 s on 16 cores
  GET  /dial?url=http://host/path&timeout=5s
                                            get another URL and tell what came back
  GET  /stop?code=0                         end the program

It learns who it is from POD_NAME, POD_NAMESPACE, NODE_NAME, CLUSTER_NAME and POD_IP.
";

/// How long requests that are being answered may go on after SIGTERM; a pod's deletion waits for it.
const DRAIN: Duration = Duration::from_secs(1);
/// Between two tries of `get`.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
const MAX_RETRIES: u32 = 1000;
const MAX_PRINTED_BODY: usize = 16 * 1024 * 1024;
/// What a shell reports for a process that SIGTERM ended.
const TERMINATED: i32 = 143;
/// The arguments are wrong.
const USAGE: u8 = 2;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Command {
    Serve { listen: Listen },
    Get { url: Url, timeout: Duration, retries: u32 },
    Sleep(Duration),
    Exit(u8),
    Note { file: String, text: String },
    Help,
    Version,
}

/// Runs `sandbox-app` with its arguments (without the program's name).
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let outcome = Command::parse(args, environment).map_err(|why| (USAGE, why));
    match outcome.and_then(|command| command.run().map_err(|why| (1, why))) {
        Ok(code) => code,
        Err((code, why)) => {
            let hint = if code == USAGE { "\nTry sandbox-app --help." } else { "" };
            // With stderr gone, the exit code still tells.
            let _ = writeln!(io::stderr(), "sandbox-app: {why}{hint}");
            ExitCode::from(code)
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this program has no clap; all of its environment enters here")]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Command {
    fn parse(
        args: impl IntoIterator<Item = String>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let mut args = args.into_iter().peekable();
        // Options without a command belong to the server.
        let name = args.next_if(|arg| !arg.starts_with("--listen")).unwrap_or_else(|| "serve".to_owned());
        let mut rest = Arguments::split(args)?;
        let command = match name.as_str() {
            "serve" => {
                let port = || environment("PORT").map(|port| format!(":{port}"));
                let listen = rest.option("--listen").or_else(port).unwrap_or_else(|| ":8080".into());
                Self::Serve { listen: Listen::parse(&listen)? }
            }
            "get" => Self::Get {
                url: Url::parse(&rest.positional("a URL")?)?,
                timeout: parse_duration(&rest.option("--timeout").unwrap_or_else(|| "5s".into()))?,
                retries: parse_retries(rest.option("--retry"))?,
            },
            "sleep" => Self::Sleep(parse_duration(&rest.positional("a duration")?)?),
            "exit" => Self::Exit(parse_code(&rest.positional("an exit code")?)?),
            "note" => Self::Note { file: rest.positional("a file")?, text: rest.positional("a text")? },
            "help" | "--help" | "-h" => Self::Help,
            "version" | "--version" | "-V" => Self::Version,
            other => return Err(format!("there is no command {other:?}")),
        };
        rest.finish()?;
        Ok(command)
    }

    fn run(self) -> Result<ExitCode, String> {
        let termination = Termination::catch().map_err(|error| format!("cannot block signals: {error}"))?;
        match self {
            Self::Serve { listen } => return serve(listen, &termination),
            Self::Get { url, timeout, retries } => {
                exit_when_terminated(termination)?;
                return get(&url, timeout, retries);
            }
            Self::Sleep(duration) => {
                exit_when_terminated(termination)?;
                sleep(duration);
            }
            Self::Exit(code) => return Ok(ExitCode::from(code)),
            Self::Note { file, text } => {
                print(&note(&file, &text).map_err(|error| format!("{file}: {error}"))?)?;
            }
            Self::Help => print(HELP.as_bytes())?,
            Self::Version => print(concat!("sandbox-app ", env!("CARGO_PKG_VERSION"), "\n").as_bytes())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn serve(listen: Listen, termination: &Termination) -> Result<ExitCode, String> {
    let server = Server::bind(listen, App::new(identity(environment)))?;
    let address = server.address().map_err(|error| format!("cannot tell the own address: {error}"))?;
    let busy = server.busy();
    let spawned = std::thread::Builder::new().name("accept".into()).spawn(move || server.run());
    spawned.map_err(|error| format!("cannot start a thread: {error}"))?;
    log(format_args!("listening on {address}"));
    let signal = termination.wait();
    log(format_args!("ending on {signal}"));
    busy.drain(DRAIN);
    Ok(ExitCode::SUCCESS)
}

fn identity(environment: impl Fn(&str) -> Option<String>) -> Identity {
    Identity {
        // A pod's host name is its name, unless it is on the host network.
        pod: environment("POD_NAME").or_else(host_name),
        namespace: environment("POD_NAMESPACE"),
        node: environment("NODE_NAME"),
        cluster: environment("CLUSTER_NAME"),
        pod_ip: environment("POD_IP"),
    }
}

fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// As PID 1 a program does not die of SIGTERM by itself.
fn exit_when_terminated(termination: Termination) -> Result<(), String> {
    let wait = move || {
        termination.wait();
        std::process::exit(TERMINATED);
    };
    let spawned = std::thread::Builder::new().name("signals".into()).spawn(wait);
    spawned.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Adds a line to a file, which is made if it is not there, and returns all of it.
fn note(file: &str, text: &str) -> io::Result<Vec<u8>> {
    let mut opened = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
    writeln!(opened, "{text}")?;
    std::fs::read(file)
}

fn get(url: &Url, timeout: Duration, retries: u32) -> Result<ExitCode, String> {
    let client = Client::new();
    for left in (0..=retries).rev() {
        let why = match client.get(url, timeout, MAX_PRINTED_BODY) {
            Ok(answer) if answer.status == 200 && answer.truncated => {
                return Err(format!("{url} answers with more than {MAX_PRINTED_BODY} bytes"));
            }
            Ok(answer) if answer.status == 200 => {
                print(&answer.body)?;
                return Ok(ExitCode::SUCCESS);
            }
            Ok(answer) => {
                let body = String::from_utf8_lossy(&answer.body).into_owned();
                format!("{url} answers with status {}: {}", answer.status, body.trim_end())
            }
            Err(error) => error.to_string(),
        };
        if left == 0 {
            return Err(why);
        }
        let _ = writeln!(io::stderr(), "sandbox-app: {why}; trying again ({left} left)");
        sleep(RETRY_PAUSE);
    }
    Err(format!("cannot get {url}"))
}

fn print(bytes: &[u8]) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| format!("cannot print: {error}"))
}

fn parse_retries(text: Option<String>) -> Result<u32, String> {
    let Some(text) = text else { return Ok(0) };
    let retries = text.parse().ok().filter(|retries| *retries <= MAX_RETRIES);
    retries.ok_or_else(|| format!("--retry {text:?} is not a number up to {MAX_RETRIES}"))
}

fn parse_code(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| format!("{text:?} is not an exit code from 0 to 255"))
}

/// `--name value` and `--name=value` taken apart from the rest.
struct Arguments {
    options: Vec<(String, String)>,
    positional: Vec<String>,
}

impl Arguments {
    fn split(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut split = Self { options: Vec::new(), positional: Vec::new() };
        while let Some(arg) = args.next() {
            if !arg.starts_with("--") {
                split.positional.push(arg);
            } else if let Some((name, value)) = arg.split_once('=') {
                split.options.push((name.to_owned(), value.to_owned()));
            } else {
                let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
                split.options.push((arg, value));
            }
        }
        Ok(split)
    }

    fn option(&mut self, name: &str) -> Option<String> {
        let position = self.options.iter().position(|(have, _)| have == name)?;
        Some(self.options.remove(position).1)
    }

    fn positional(&mut self, what: &str) -> Result<String, String> {
        if self.positional.is_empty() {
            Err(format!("{what} is missing"))
        } else {
            Ok(self.positional.remove(0))
        }
    }

    fn finish(&self) -> Result<(), String> {
        match (self.options.first(), self.positional.first()) {
            (Some((option, _)), _) => Err(format!("{option} does not belong here")),
            (None, Some(argument)) => Err(format!("{argument:?} does not belong here")),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
