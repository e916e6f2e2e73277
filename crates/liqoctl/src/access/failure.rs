//! Why a cluster could not be used, in one sentence, and what to check.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError};

/// What was to be reached, for messages.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The API server's URL.
    pub(crate) server: String,
    /// The context, unless we run in a pod.
    pub(crate) context: Option<String>,
    /// The file or files that say so.
    pub(crate) from: String,
    /// The program that gets the credentials, if it is one's business.
    pub(crate) plugin: Option<String>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.trim_end_matches('/');
        match &self.context {
            Some(context) => write!(f, "{server} (context {context} of {})", self.from),
            None => write!(f, "{server} ({})", self.from),
        }
    }
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It is not known which cluster is meant.
    Configuration,
    /// Nobody listens there.
    Refused,
    /// No way leads there, or nobody answers.
    Silent,
    /// The name is not known.
    Name,
    /// The other side is not who it should be, or does not speak TLS.
    Tls,
    /// The program or file that has the credentials does not give them.
    Credentials,
    /// The server does not know us.
    Unauthorized,
    /// The server knows us, and does not let us.
    Forbidden,
    /// It answered, but not as an API server does.
    Answer,
}

impl Trouble {
    /// What to check.
    fn advice(self) -> &'static str {
        match self {
            Self::Configuration => "Name another with --kubeconfig or --context",
            Self::Refused => "Nothing listens there: is the cluster running, and is the address still right?",
            Self::Silent => "Check the address, the network or VPN to it, and firewalls in between",
            Self::Name => "Check the server's name in the kubeconfig, and this machine's DNS",
            Self::Tls => {
                "Check that the kubeconfig belongs to this cluster: its CA must have signed the server's certificate"
            }
            Self::Credentials => {
                "Run that program by hand to see what it says, or use a kubeconfig without it"
            }
            Self::Unauthorized => {
                "The credentials in the kubeconfig are wrong or have expired: get new ones, or log in again"
            }
            Self::Forbidden => "Ask an administrator of the cluster for the right, or use another --context",
            Self::Answer => {
                "Check that the address is that of a Kubernetes API server; -vv shows the requests"
            }
        }
    }
}

/// A cluster cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{sentence}. {advice}")]
pub(crate) struct AccessError {
    /// What kind of failure it is.
    pub(crate) trouble: Trouble,
    /// What happened, without a full stop.
    pub(crate) sentence: String,
    /// What to do.
    pub(crate) advice: String,
}

impl AccessError {
    fn configuration(sentence: String, advice: String) -> Self {
        Self { trouble: Trouble::Configuration, sentence, advice }
    }

    /// A kubeconfig that cannot be read or used.
    pub(super) fn unusable(what: &str, error: &(dyn Error + 'static)) -> Self {
        let sentence = format!("cannot use {what}: {}", with_causes(error));
        Self::configuration(sentence, Trouble::Configuration.advice().to_owned())
    }

    /// A kubeconfig that is not there, or not for us.
    pub(super) fn unreadable(file: &Path, error: &io::Error) -> Self {
        let sentence = format!("cannot read the kubeconfig {}: {error}", file.display());
        Self::configuration(
            sentence,
            "Check the path and who may read it, or name another with --kubeconfig".into(),
        )
    }

    pub(super) fn unknown_context(context: &str, files: &str, known: &[&str]) -> Self {
        let sentence = format!(
            "there is no context {context:?} in {files}, and no running sandbox has a cluster of that name"
        );
        Self::configuration(sentence, contexts(known))
    }

    pub(super) fn no_current_context(files: &str, known: &[&str]) -> Self {
        let sentence = format!("{files} has no current context");
        Self::configuration(
            sentence,
            format!("Choose one with --context, or with kubectl config use-context. {}", contexts(known)),
        )
    }

    pub(super) fn no_kubeconfig(wanted: &str, context: Option<&str>, sandbox: Option<&Path>) -> Self {
        let there_is = match wanted {
            "" => "there is no kubeconfig".to_owned(),
            files => format!("there is no kubeconfig at {files}"),
        };
        if let Some(context) = context {
            let sentence = format!("{there_is}, and no running sandbox has a cluster {context:?}");
            return Self::configuration(sentence, "Name the file with --kubeconfig or in $KUBECONFIG".into());
        }
        let advice = match sandbox {
            Some(path) => format!(
                "A sandbox is running: choose one of its clusters with --context, or for all commands: export KUBECONFIG={}",
                path.display()
            ),
            None => "Get one from your cluster's provider (kubeadm: /etc/kubernetes/admin.conf, k3s: /etc/rancher/k3s/k3s.yaml, \
                     kind: kind export kubeconfig) and name it with --kubeconfig or in $KUBECONFIG, or try a cluster on this \
                     machine: sudo liqoctl sandbox up"
                .into(),
        };
        Self::configuration(there_is, advice)
    }

    pub(super) fn several_sandboxes(cluster: &str, names: &[String]) -> Self {
        let sentence = format!("several running sandboxes have a cluster {cluster}: {}", names.join(", "));
        Self::configuration(sentence, "Say which one with LIQO_SANDBOX_NAME, or give its --kubeconfig".into())
    }
}

fn contexts(known: &[&str]) -> String {
    match known {
        [] => "It has no context at all".into(),
        known => format!("It has: {}", known.join(", ")),
    }
}

impl Target {
    /// No answer in time.
    pub(super) fn silent(&self, after: Duration) -> AccessError {
        self.failure(Trouble::Silent, &format!("no answer within {} s", after.as_secs()))
    }

    /// What a client's error means for the user.
    pub(crate) fn explain(&self, error: &kube::Error) -> AccessError {
        let (trouble, why) = classify(error);
        self.failure(trouble, &why)
    }

    fn failure(&self, trouble: Trouble, why: &str) -> AccessError {
        let sentence = match trouble {
            Trouble::Unauthorized => {
                format!("the API server at {self} does not accept the credentials: {why}")
            }
            Trouble::Credentials => match &self.plugin {
                Some(plugin) => format!("the program {plugin} gave no credentials for {self}: {why}"),
                None => format!("there are no credentials for {self}: {why}"),
            },
            Trouble::Forbidden => format!("the API server at {self} refused: {why}"),
            Trouble::Answer => format!("the API server at {self} gave an unusable answer: {why}"),
            Trouble::Configuration => format!("cannot use the credentials for {self}: {why}"),
            _ => format!("cannot reach the API server at {self}: {why}"),
        };
        AccessError { trouble, sentence, advice: trouble.advice().to_owned() }
    }
}

fn classify(error: &kube::Error) -> (Trouble, String) {
    match error {
        kube::Error::Api(status) if status.code == 401 => (Trouble::Unauthorized, "401 Unauthorized".into()),
        kube::Error::Api(status) if status.code == 403 => (Trouble::Forbidden, status.message.clone()),
        kube::Error::Api(status) => {
            (Trouble::Answer, format!("{} {}", status.code, first_line(&status.message)))
        }
        kube::Error::SerdeError(_) => (Trouble::Answer, "it is not what Kubernetes would say".into()),
        kube::Error::Auth(source) => (Trouble::Credentials, with_causes(source)),
        kube::Error::RustlsTls(source) => (Trouble::Configuration, with_causes(source)),
        error => transport(error).unwrap_or_else(|| (Trouble::Answer, with_causes(error))),
    }
}

/// What went wrong below HTTP.
fn transport(error: &(dyn Error + 'static)) -> Option<(Trouble, String)> {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    chain.filter_map(|link| io_failure(link).or_else(|| link.downcast_ref().map(tls_failure))).last()
}

fn io_failure(link: &(dyn Error + 'static)) -> Option<(Trouble, String)> {
    let mut error = link.downcast_ref::<io::Error>()?;
    // One of these hides what it was made of from those who ask for its source.
    while let Some(inner) = error.get_ref() {
        if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
            return Some(tls_failure(tls));
        }
        match inner.downcast_ref::<io::Error>() {
            Some(inner) => error = inner,
            None => break,
        }
    }
    let text = error.to_string();
    Some(match error.kind() {
        io::ErrorKind::ConnectionRefused => (Trouble::Refused, "connection refused".into()),
        io::ErrorKind::TimedOut => (Trouble::Silent, "no answer in time".into()),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            (Trouble::Silent, "no route leads there".into())
        }
        _ if text.contains("lookup address") => (Trouble::Name, "its name cannot be resolved".into()),
        _ => (Trouble::Silent, text),
    })
}

fn tls_failure(error: &rustls::Error) -> (Trouble, String) {
    match error {
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied),
        ) => (Trouble::Unauthorized, format!("it refused our certificate ({alert:?})")),
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            (Trouble::Tls, "its certificate is signed by an unknown authority".into())
        }
        rustls::Error::InvalidMessage(_) => (Trouble::Tls, "what listens there does not speak TLS".into()),
        other => (Trouble::Tls, other.to_string()),
    }
}

/// An error with what caused it; layers that repeat the one below are left out.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let mut text = error.to_string();
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
