//! `liqoctl add`: makes another cluster known, and borrows from it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use liqo_api::Fingerprint;
use liqo_api::names::ClusterId;
use liqo_authentication::tokens::{self, Token};
use tokio::time::Instant;

use crate::access::{Access, Connection};
use crate::duration::parse_span;
use crate::output::DataFormat;
use crate::peering::declare::{self, Wanted};
use crate::peering::key::Shown;
use crate::peering::verify::Recognition;
use crate::peering::{follow, own, same_cluster, verify, view};
use crate::progress::Progress;

/// Arguments of `add`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to add; it may be left out
    #[arg(value_enum)]
    what: Option<What>,
    /// What to call the cluster here [default: its own name]
    #[arg(requires = "what")]
    name: Option<String>,
    /// Where the cluster's authentication service is, such as https://203.0.113.7:31520
    #[arg(long, value_name = "URL", value_parser = verify::parse_url)]
    auth_url: String,
    /// The cluster's ID
    #[arg(long)]
    id: ClusterId,
    /// The token that lets this cluster in there; not needed by one that is known there
    #[arg(long, conflicts_with = "token_file", value_parser = parse_token)]
    token: Option<Token>,
    /// The file with the token; - is standard input
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The fingerprint of the service's certificate; without one and without --ca-file, a public authority must vouch for it
    #[arg(long, value_name = "sha256:HEX")]
    fingerprint: Option<Fingerprint>,
    /// The file with the authority that signed the service's certificate, in PEM, instead of a fingerprint: the certificate
    /// may then be renewed
    #[arg(long, value_name = "FILE", conflicts_with = "fingerprint")]
    ca_file: Option<PathBuf>,
    /// Trust whoever answers; only for trying things out, as whoever sits in between can take the token
    #[arg(long, conflicts_with_all = ["fingerprint", "ca_file"])]
    insecure_skip_tls_verify: bool,
    /// Do not ask from this machine who answers there; the cluster itself asks, too
    #[arg(long)]
    no_check: bool,
    #[command(flatten)]
    wish: Wish,
    #[command(flatten)]
    waiting: Waiting,
}

/// What can be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Another cluster
    Cluster,
}

/// What is wanted of the other cluster; to borrow from it, if nothing is said.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Wish {
    /// Offer it resources unasked, as much as policy says: a standing offer, which it may accept
    #[arg(long)]
    pub(crate) lend: bool,
    /// Ask it for nothing; what is borrowed from it ends
    #[arg(long)]
    pub(crate) no_borrow: bool,
}

/// How long a command waits for a peering, and what it prints at the end.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Waiting {
    /// Do not wait until resources are lent, or offered
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_span)]
    pub(crate) timeout: Duration,
    /// Output format, for how the peering is at the end
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<DataFormat>,
    /// Somebody has just decided about the offer: what is told about the decision may be older.
    #[arg(skip)]
    pub(crate) decided: bool,
}

pub(crate) const EXAMPLES: &str = "Examples:
  # What liqoctl generate-add-command prints at the other cluster
  liqoctl add --auth-url https://203.0.113.7:31520 --id 5d0f4c1e-… --token 9f3c… --fingerprint sha256:3f0c…

  # The same, under a name of one's own
  liqoctl add cluster milan --auth-url https://203.0.113.7:31520 --id 5d0f4c1e-… --token 9f3c… --fingerprint sha256:3f0c…

  # A cluster whose certificate a company's own authority signs, such as with cert-manager
  liqoctl add --auth-url https://milan.example.com:31520 --id 5d0f4c1e-… --token 9f3c… --ca-file company-ca.crt

  # Lend to it without being asked, and borrow nothing: it gets a standing offer
  liqoctl add --auth-url https://198.51.100.4:31520 --id b7e1… --token 27aa… --fingerprint sha256:81d4… --lend --no-borrow

Ends with 0 when the cluster lends; with --lend --no-borrow when it is offered resources, which liqoctl offer accept takes
there; with --no-wait when it is known. Running it again changes what differs, and goes on waiting. A cluster that shows
another key than the one that is known by the same ID is refused.";

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let token = self.token()?;
        let recognition = self.recognition()?;
        let connection = access.connect().await?;
        let me = own::require_identity(&connection).await?;
        if me.id == self.id {
            bail!("{}", same_cluster(&self.id));
        }
        let mut progress = Progress::new(access.stderr());
        let (cluster_name, key) = if self.no_check {
            (None, Shown::NotAsked)
        } else {
            progress.busy(&format!("asking {} who it is", self.auth_url));
            let found = verify::verify(&self.auth_url, &recognition.trust(), &self.id).await?;
            (Some(found.identity.name), found.public_key.into())
        };
        let wanted = Wanted {
            name: self.name.clone(),
            id: self.id.clone(),
            cluster_name,
            url: self.auth_url.clone(),
            recognition,
            key,
            borrow: !self.wish.no_borrow,
            lend: self.wish.lend,
        };
        let name =
            declare_with(&connection, &wanted, token.as_ref(), self.waiting.timeout, &mut progress).await?;
        self.waiting.finish(&connection, &name, self.wish, progress).await
    }

    fn recognition(&self) -> Result<Recognition> {
        Ok(Recognition {
            fingerprint: self.fingerprint,
            authorities: self.ca_file.as_deref().map(verify::read_authorities).transpose()?,
            insecure: self.insecure_skip_tls_verify,
        })
    }

    fn token(&self) -> Result<Option<Token>> {
        let text = match (&self.token, &self.token_file) {
            (Some(token), _) => return Ok(Some(token.clone())),
            (None, Some(file)) if file.as_os_str() == "-" => std::io::read_to_string(std::io::stdin())
                .context("cannot read the token from standard input")?,
            (None, Some(file)) => std::fs::read_to_string(file)
                .with_context(|| format!("cannot read the token from {}", file.display()))?,
            (None, None) => return Ok(None),
        };
        parse_token(&text).map(Some).map_err(anyhow::Error::msg)
    }
}

/// A token never appears in what is printed for debugging.
fn parse_token(text: &str) -> Result<Token, String> {
    let token = Token::new(text);
    if token.is_empty() {
        return Err("the token is empty; run liqoctl generate-add-command at the other cluster, and use what it prints"
            .to_owned());
    }
    Ok(token)
}

/// Makes a cluster known, its token first: the first call needs it.
pub(crate) async fn declare_with(
    connection: &Connection,
    wanted: &Wanted,
    token: Option<&Token>,
    timeout: Duration,
    progress: &mut Progress,
) -> Result<String> {
    // What is refused leaves no token behind.
    declare::check(connection, wanted).await?;
    if let Some(token) = token {
        tokens::keep_remote(&connection.client, &connection.namespace, &wanted.id, token).await?;
    }
    let (name, changed) = declare::declare(connection, wanted, Instant::now() + timeout, progress).await?;
    progress.done(&match changed {
        true => format!("{name} is known"),
        false => format!("{name} was known already"),
    });
    Ok(name)
}

impl Waiting {
    /// Waits as asked, and tells how it is.
    pub(crate) async fn finish(
        self,
        connection: &Connection,
        name: &str,
        wish: Wish,
        mut progress: Progress,
    ) -> Result<ExitCode> {
        if !self.no_wait && !wish.no_borrow {
            follow::established(connection, name, self.timeout, self.decided, &mut progress).await?;
        }
        if !self.no_wait && wish.lend {
            follow::offered(connection, name, self.timeout, &mut progress).await?;
        }
        drop(progress);
        if let Some(format) = self.output {
            let peer = view::read(connection, name).await?;
            crate::output::print(Some(format.into()), &peer, |_| String::new())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests;
