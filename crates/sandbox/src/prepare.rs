//! What is there before the first component starts: the network, the programs, images, certificates, configuration.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use ipnet::Ipv4Net;

use crate::binaries::Binaries;
use crate::bring_up::builtin_images;
use crate::error::{FileContext, Result, SandboxError};
use crate::plan::{Place, Plan};
use crate::process::Inside;
use crate::spec::Spec;
use crate::state::{Faults, Lock, Owner, Phase, State};
use crate::{control_plane, host, image, network, node, pki};

/// Chooses a free subnet and builds the network, while no other sandbox does the same.
pub(crate) fn connect(place: &Place, spec: &Spec, owner: Option<&Owner>) -> Result<Plan> {
    let _lock = Lock::of_base(place.base())?;
    host::raise_limits(place.base())?;
    let subnet = free_subnet(place)?;
    let plan = Plan::new(place, spec, subnet);
    let state = State {
        phase: Phase::Starting,
        owner: owner.cloned(),
        plan: plan.clone(),
        faults: Faults::default(),
    };
    state.write(place)?;
    network::create(place, &plan)?;
    Ok(plan)
}

fn free_subnet(place: &Place) -> Result<Ipv4Net> {
    let output = Inside::Host.run(
        "listing this machine's routes",
        ["ip", "-4", "-o", "route", "show", "table", "all"],
        b"",
    )?;
    let text = String::from_utf8_lossy(&output.stdout);
    let taken: Vec<Ipv4Net> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let free = |subnet: &Ipv4Net| !taken.iter().any(|other| subnet.contains(other) || other.contains(subnet));
    place.candidate_subnets().find(free).ok_or_else(|| {
        SandboxError::Host(
            "every network of 100.64.0.0/10 is taken on this machine. Take another sandbox down first".into(),
        )
    })
}

pub(crate) fn write_files(place: &Place, plan: &Plan, binaries: &Binaries) -> Result<()> {
    write_programs(place, binaries)?;
    let real = plan.clusters.iter().any(|cluster| !cluster.nodes().is_empty());
    if real {
        write_images(place, binaries)?;
    }
    let programs =
        binaries.iter().filter_map(|(_, path)| Some(fs::canonicalize(path).ok()?.parent()?.to_owned()));
    let hidden = host::hidden_from_nodes(programs.chain([place.root()]));
    for cluster in &plan.clusters {
        pki::write(cluster)?;
        control_plane::write_files(cluster)?;
        for machine in cluster.nodes() {
            node::write_files(place, cluster, machine, &hidden)?;
        }
    }
    pki::write_merged(place, plan)
}

/// One directory with every program under its own name: the multi-call binary goes by it.
fn write_programs(place: &Place, binaries: &Binaries) -> Result<()> {
    let bin = place.bin();
    fs::create_dir_all(&bin).at("create", &bin)?;
    for (name, path) in binaries.iter() {
        let link = bin.join(name);
        symlink(path, &link).at("create", &link)?;
    }
    let pause = bin.join("pause");
    fs::write(&pause, image::pause_program()).at("write", &pause)?;
    fs::set_permissions(&pause, fs::Permissions::from_mode(0o755)).at("make executable", &pause)
}

fn write_images(place: &Place, binaries: &Binaries) -> Result<()> {
    let dir = place.images();
    fs::create_dir_all(&dir).at("create", &dir)?;
    let [pause, coredns, app] = <[PathBuf; 3]>::try_from(builtin_images(place)).unwrap_or_default();
    image::pause(&pause)?;
    image::coredns(binaries.path("coredns")?, &coredns)?;
    image::sandbox_app(&app)?;
    Ok(())
}
