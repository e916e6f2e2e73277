//! Choosing a kubeconfig and a context, as kubectl would.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::failure::{AccessError, Target};
use super::{Environment, Flags, proxy, sandbox};

/// What was chosen, not yet used.
#[derive(Debug)]
pub(super) struct Chosen {
    source: Source,
    /// For the user, if it is not what kubectl would have chosen.
    pub(super) note: Option<String>,
}

#[derive(Debug)]
enum Source {
    File { kubeconfig: Box<Kubeconfig>, context: String, files: Vec<PathBuf> },
    Sandbox { kubeconfig: PathBuf, cluster: String },
    Pod,
}

/// Decides which cluster is meant.
pub(super) fn choose(environment: &Environment, flags: &Flags) -> Result<Chosen, AccessError> {
    let files = Files::find(environment, flags);
    let kubeconfig = files.read()?;
    let wanted = flags.context.as_deref();
    if let Some(kubeconfig) = kubeconfig {
        let context = wanted.or(kubeconfig.current_context.as_deref()).filter(|name| !name.is_empty());
        match context.map(str::to_owned) {
            Some(context) if kubeconfig.contexts.iter().any(|known| known.name == context) => {
                let source =
                    Source::File { kubeconfig: Box::new(kubeconfig), context, files: files.existing };
                return Ok(Chosen { source, note: None });
            }
            Some(context) if files.explicit || wanted.is_none() => {
                return Err(files.unknown(&context, &kubeconfig));
            }
            Some(context) => {
                return sandbox_cluster(environment, &context)
                    .unwrap_or_else(|| Err(files.unknown(&context, &kubeconfig)));
            }
            None if !kubeconfig.contexts.is_empty() || files.explicit => {
                return Err(files.no_current(&kubeconfig));
            }
            // A file without any context says as little as no file.
            None => {}
        }
    }
    if let Some(context) = wanted {
        return sandbox_cluster(environment, context)
            .unwrap_or_else(|| Err(AccessError::no_kubeconfig(&files.wanted(), Some(context), None)));
    }
    if environment.in_cluster.is_some() {
        return Ok(Chosen { source: Source::Pod, note: None });
    }
    let export = sandbox::running(environment).into_iter().next().map(|sandbox| sandbox.place().kubeconfig());
    Err(AccessError::no_kubeconfig(&files.wanted(), None, export.as_deref()))
}

fn sandbox_cluster(environment: &Environment, cluster: &str) -> Option<Result<Chosen, AccessError>> {
    let found = sandbox::with_cluster(environment, cluster)?;
    Some(found.map(|found| {
        let note = format!(
            "no kubeconfig has the context {cluster:?}; using cluster {cluster} of sandbox {} ({})",
            found.sandbox,
            found.kubeconfig.display()
        );
        let source = Source::Sandbox { kubeconfig: found.kubeconfig, cluster: cluster.to_owned() };
        Chosen { source, note: Some(note) }
    }))
}

impl Chosen {
    /// The client configuration, with the proxy that the way to the server needs.
    pub(super) async fn load(self, proxy: &proxy::Variables) -> Result<(Config, Target), AccessError> {
        let (mut config, context, from) = match self.source {
            Source::Pod => {
                let config = Config::incluster()
                    .map_err(|error| AccessError::unusable("the service account of this pod", &error))?;
                (config, None, "the service account of this pod".to_owned())
            }
            Source::File { kubeconfig, context, files } => {
                let from = join(&files);
                let config = load(*kubeconfig, &context, &from).await?;
                (config, Some(context), from)
            }
            Source::Sandbox { kubeconfig, cluster } => {
                let from = kubeconfig.display().to_string();
                let mut config = load(read(&kubeconfig)?, &cluster, &from).await?;
                // The clusters of a sandbox are on this machine; no proxy knows the way.
                config.proxy_url = None;
                (config, Some(cluster), from)
            }
        };
        if config.proxy_url.is_some() {
            config.proxy_url = proxy.choose(config.proxy_url.take(), &config.cluster_url);
        }
        let plugin = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
        let target = Target { server: config.cluster_url.to_string(), context, from, plugin };
        Ok((config, target))
    }
}

async fn load(kubeconfig: Kubeconfig, context: &str, from: &str) -> Result<Config, AccessError> {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| AccessError::unusable(&format!("context {context:?} of {from}"), &error))
}

fn read(file: &Path) -> Result<Kubeconfig, AccessError> {
    Kubeconfig::read_from(file).map_err(|error| match error {
        // The client's own words name the file once more.
        KubeconfigError::ReadConfig(source, _) => AccessError::unreadable(file, &source),
        error => AccessError::unusable(&file.display().to_string(), &error),
    })
}

/// The files that may be the kubeconfig.
#[derive(Debug)]
struct Files {
    /// The user named one with `--kubeconfig`.
    explicit: bool,
    existing: Vec<PathBuf>,
    missing: Vec<PathBuf>,
}

impl Files {
    fn find(environment: &Environment, flags: &Flags) -> Self {
        if let Some(file) = &flags.kubeconfig {
            return Self { explicit: true, existing: vec![file.clone()], missing: vec![] };
        }
        let listed = environment.kubeconfig.iter().flat_map(std::env::split_paths);
        let mut files: Vec<PathBuf> = listed.filter(|file| !file.as_os_str().is_empty()).collect();
        if files.is_empty() {
            files.extend(environment.home.iter().map(|home| home.join(".kube/config")));
        }
        let (existing, missing) = files.into_iter().partition(|file| file.exists());
        Self { explicit: false, existing, missing }
    }

    /// All existing ones as one; the first to say something is right.
    fn read(&self) -> Result<Option<Kubeconfig>, AccessError> {
        let mut merged = None;
        for file in &self.existing {
            let next = read(file)?;
            merged = Some(match merged {
                None => next,
                Some(earlier) => Kubeconfig::merge(earlier, next)
                    .map_err(|error| AccessError::unusable(&join(&self.existing), &error))?,
            });
        }
        Ok(merged)
    }

    fn wanted(&self) -> String {
        join(if self.existing.is_empty() { &self.missing } else { &self.existing })
    }

    fn unknown(&self, context: &str, kubeconfig: &Kubeconfig) -> AccessError {
        AccessError::unknown_context(context, &join(&self.existing), &names(kubeconfig))
    }

    fn no_current(&self, kubeconfig: &Kubeconfig) -> AccessError {
        AccessError::no_current_context(&join(&self.existing), &names(kubeconfig))
    }
}

fn names(kubeconfig: &Kubeconfig) -> Vec<&str> {
    kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect()
}

fn join(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" and ")
}
