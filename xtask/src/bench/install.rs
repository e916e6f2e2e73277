//! What installing costs, and what the installed manager costs while nothing happens.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use tokio::time::Instant;

use super::measure::{Baseline, Measurement, Samples, Unit};

/// Beside whatever other sandboxes the machine has.
const SANDBOX: &str = "bench";
const CLUSTER: &str = "one";

const INSTALLED: f64 = 15.0;
const IDLE_MEMORY: f64 = 30.0;
const IDLE_CPU: f64 = 0.005;
const READY: f64 = 2.0;

/// Long enough for lease renewals and watch restarts to have their usual share.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// A manager that is not ready by then will not become it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The finest that matters against two seconds.
const LOOK: Duration = Duration::from_millis(20);

/// The smallest thing that becomes ready as a Deployment: what Kubernetes itself takes for one.
const BASELINE: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: baseline, namespace: default}
spec:
  selector: {matchLabels: {app: baseline}}
  template:
    metadata: {labels: {app: baseline}}
    spec:
      containers:
      - name: app
        image: localhost/liqo/sandbox-app:1
        readinessProbe: {httpGet: {port: 8080, path: /}, periodSeconds: 1}
";

/// The program under measurement and the cluster it installs into.
pub(super) struct Installer {
    liqoctl: PathBuf,
    kubeconfig: PathBuf,
}

impl Installer {
    /// Starts a cluster of one real node.
    pub(super) fn start(liqoctl: &Path, out: &Path) -> Result<Self> {
        let installer =
            Self { liqoctl: liqoctl.to_owned(), kubeconfig: out.join("install-bench.kubeconfig") };
        installer.sandbox(&["down"])?;
        installer.sandbox(&["up", "--clusters", CLUSTER])?;
        let kubeconfig = installer.sandbox(&["kubeconfig", CLUSTER])?;
        std::fs::write(&installer.kubeconfig, kubeconfig)
            .with_context(|| format!("cannot write {}", installer.kubeconfig.display()))?;
        Ok(installer)
    }

    /// All numbers about an installation.
    pub(super) fn measure(&self, rounds: usize) -> Result<Vec<Measurement>> {
        let (mut installs, mut baselines, mut readies) = (vec![], vec![], vec![]);
        for round in 1..=rounds {
            baselines.push(self.baseline()?);
            installs.push(self.timed(&["install", "sandbox"])?);
            readies.push(self.ready_after_start()?);
            eprintln!(
                "  install, {round} of {rounds}: {:.2} s; a plain Deployment: {:.2} s; ready {:.2} s after start",
                installs[round - 1],
                baselines[round - 1],
                readies[round - 1]
            );
            if round < rounds {
                self.timed(&["uninstall", "--purge", "--yes"])?;
            }
        }
        eprintln!("  looking at the idle manager for {} s", IDLE_TIME.as_secs());
        let idle = self.idle()?;
        let plain = Baseline { what: "a plain Deployment".to_owned(), samples: samples(baselines)? };
        Ok(vec![
            measurement("install, all Ready", Unit::Seconds, installs, INSTALLED, plain.clone())?,
            measurement("manager, start to ready", Unit::Seconds, readies, READY, plain)?,
            measurement(
                "manager, idle memory",
                Unit::Megabytes,
                vec![idle.megabytes],
                IDLE_MEMORY,
                Baseline {
                    what: "kube-scheduler, same cluster".to_owned(),
                    samples: samples(vec![idle.scheduler_megabytes])?,
                },
            )?,
            measurement(
                "manager, idle CPU",
                Unit::Cores,
                vec![idle.cores],
                IDLE_CPU,
                Baseline {
                    what: "kube-scheduler, same cluster".to_owned(),
                    samples: samples(vec![idle.scheduler_cores])?,
                },
            )?,
        ])
    }

    /// Seconds until a plain Deployment is ready and gone again is not counted.
    fn baseline(&self) -> Result<f64> {
        let started = Instant::now();
        self.kubectl_with_input(&["apply", "-f", "-"], BASELINE)?;
        self.kubectl(&["rollout", "status", "deployment/baseline", "--timeout=60s"])?;
        let took = started.elapsed().as_secs_f64();
        self.kubectl(&["delete", "deployment/baseline", "--wait"])?;
        Ok(took)
    }

    /// Seconds from the start of a manager's process until it says that it is ready, seen from outside. Its
    /// predecessor is gone before it starts, so that nobody has to give anything up first.
    fn ready_after_start(&self) -> Result<f64> {
        let scale = |replicas: &str| {
            self.kubectl(&[
                "-n",
                "liqo",
                "scale",
                "deployment/liqo-controller-manager",
                "--replicas",
                replicas,
            ])
        };
        let old = self.manager_pod()?;
        scale("0")?;
        self.kubectl(&["-n", "liqo", "wait", "--for=delete", &format!("pod/{old}"), "--timeout=60s"])?;
        scale("1")?;
        let deadline = Instant::now() + PATIENCE;
        let pod = until(deadline, "the manager's pod does not run", || self.manager_pod())?;
        until(deadline, "the manager is not ready", || self.raw(&pod, 8081, "readyz"))?;
        let ready = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
        let started = metric(&self.raw(&pod, 8080, "metrics")?, "process_start_time_seconds")?;
        Ok(ready - started)
    }

    fn idle(&self) -> Result<Idle> {
        let pod = self.manager_pod()?;
        let (first, scheduler) = (self.raw(&pod, 8080, "metrics")?, scheduler()?);
        let started = Instant::now();
        std::thread::sleep(IDLE_TIME);
        let (second, scheduler_after) = (self.raw(&pod, 8080, "metrics")?, scheduler_usage(&scheduler)?);
        let seconds = started.elapsed().as_secs_f64();
        let cpu = |text: &str| metric(text, "process_cpu_seconds_total");
        Ok(Idle {
            megabytes: metric(&second, "process_resident_memory_bytes")? / 1e6,
            cores: (cpu(&second)? - cpu(&first)?) / seconds,
            scheduler_megabytes: scheduler_after.megabytes,
            scheduler_cores: (scheduler_after.cpu_seconds - scheduler.cpu_seconds) / seconds,
        })
    }

    fn manager_pod(&self) -> Result<String> {
        let selector = "app.kubernetes.io/component=controller-manager";
        let path = "jsonpath={.items[?(@.status.phase==\"Running\")].metadata.name}";
        let names = self.kubectl(&["-n", "liqo", "get", "pods", "-l", selector, "-o", path])?;
        names.split_whitespace().next().map(str::to_owned).context("no pod of the manager runs")
    }

    /// Asks the pod through the API server.
    fn raw(&self, pod: &str, port: u16, path: &str) -> Result<String> {
        self.kubectl(&["get", "--raw", &format!("/api/v1/namespaces/liqo/pods/{pod}:{port}/proxy/{path}")])
    }

    /// Seconds of one command, with its progress shown.
    fn timed(&self, arguments: &[&str]) -> Result<f64> {
        let started = Instant::now();
        let mut command = Command::new(&self.liqoctl);
        command.args(arguments).arg("--kubeconfig").arg(&self.kubeconfig).stdout(Stdio::null());
        let status = command.status().with_context(|| format!("cannot start {}", self.liqoctl.display()))?;
        let took = started.elapsed().as_secs_f64();
        if !status.success() {
            bail!("`liqoctl {}` failed ({status}); what it said is above", arguments.join(" "));
        }
        Ok(took)
    }

    fn sandbox(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.liqoctl);
        said(command.args(["sandbox", "--name", SANDBOX]).args(arguments).stderr(Stdio::inherit()).output()?)
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl_with_input(arguments, "")
    }

    fn kubectl_with_input(&self, arguments: &[&str], input: &str) -> Result<String> {
        use std::io::Write;
        let mut child = Command::new(&self.liqoctl)
            .args(["sandbox", "--name", SANDBOX, "kubectl", CLUSTER, "--"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        said(child.wait_with_output()?)
    }
}

impl Drop for Installer {
    fn drop(&mut self) {
        if let Err(error) = self.sandbox(&["down"]) {
            eprintln!("bench: cannot remove the sandbox: {error:#}");
        }
    }
}

/// Asks until there is an answer.
fn until<T>(deadline: Instant, what: &str, ask: impl Fn() -> Result<T>) -> Result<T> {
    loop {
        match ask() {
            Ok(answer) => return Ok(answer),
            Err(error) if Instant::now() > deadline => {
                return Err(error.context(format!("{what} after {} s", PATIENCE.as_secs())));
            }
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// What a manager costs that has nothing to do.
struct Idle {
    megabytes: f64,
    cores: f64,
    scheduler_megabytes: f64,
    scheduler_cores: f64,
}

/// The scheduler of the measured cluster: another controller that has nothing to do.
struct Scheduler {
    pid: u32,
    megabytes: f64,
    cpu_seconds: f64,
}

fn scheduler() -> Result<Scheduler> {
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains("kube-scheduler") && line.contains(&format!("/{SANDBOX}/")) {
            return scheduler_usage(&Scheduler { pid, megabytes: 0.0, cpu_seconds: 0.0 });
        }
    }
    bail!("the sandbox {SANDBOX} has no scheduler process")
}

fn scheduler_usage(scheduler: &Scheduler) -> Result<Scheduler> {
    let pid = scheduler.pid;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok())
        .context("the scheduler's memory is not to be seen")?;
    // User and system time, in hundredths of a second, the 12th and 13th field behind the name.
    let fields: Vec<f64> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect())
        .unwrap_or_default();
    let ticks = fields.get(11).zip(fields.get(12)).map(|(user, system)| user + system);
    Ok(Scheduler {
        pid,
        megabytes: kilobytes * 1024.0 / 1e6,
        cpu_seconds: ticks.context("the scheduler's CPU time is not to be seen")? / 100.0,
    })
}

fn said(output: Output) -> Result<String> {
    if !output.status.success() {
        bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A value of the text that Prometheus would read.
fn metric(text: &str, name: &str) -> Result<f64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("the manager does not tell {name}"))
}

fn samples(runs: Vec<f64>) -> Result<Samples> {
    Samples::new(runs).context("nothing was measured")
}

fn measurement(
    what: &str,
    unit: Unit,
    runs: Vec<f64>,
    target: f64,
    baseline: Baseline,
) -> Result<Measurement> {
    Ok(Measurement { what: what.to_owned(), unit, samples: samples(runs)?, target: Some(target), baseline })
}
