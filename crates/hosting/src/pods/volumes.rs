//! Which volumes a pod of a consumer may have: those that are its own.

use k8s_openapi::api::core::v1::{ProjectedVolumeSource, Volume, VolumeProjection};

use super::{FORBIDDEN, Refusal};

/// The volume as it is passed on.
pub(super) fn volume(it: Volume) -> Result<Volume, Refusal> {
    let Volume {
        name,
        config_map,
        downward_api,
        empty_dir,
        ephemeral,
        image,
        persistent_volume_claim,
        projected,
        secret,
        aws_elastic_block_store,
        azure_disk,
        azure_file,
        cephfs,
        cinder,
        csi,
        fc,
        flex_volume,
        flocker,
        gce_persistent_disk,
        git_repo,
        glusterfs,
        host_path,
        iscsi,
        nfs,
        photon_persistent_disk,
        portworx_volume,
        quobyte,
        rbd,
        scale_io,
        storageos,
        vsphere_volume,
    } = it;
    // They reach what is not the consumer's: the node's files, or storage by the node's own connections.
    let foreign = [
        ("awsElasticBlockStore", aws_elastic_block_store.is_some()),
        ("azureDisk", azure_disk.is_some()),
        ("azureFile", azure_file.is_some()),
        ("cephfs", cephfs.is_some()),
        ("cinder", cinder.is_some()),
        ("csi", csi.is_some()),
        ("fc", fc.is_some()),
        ("flexVolume", flex_volume.is_some()),
        ("flocker", flocker.is_some()),
        ("gcePersistentDisk", gce_persistent_disk.is_some()),
        ("gitRepo", git_repo.is_some()),
        ("glusterfs", glusterfs.is_some()),
        ("hostPath", host_path.is_some()),
        ("iscsi", iscsi.is_some()),
        ("nfs", nfs.is_some()),
        ("photonPersistentDisk", photon_persistent_disk.is_some()),
        ("portworxVolume", portworx_volume.is_some()),
        ("quobyte", quobyte.is_some()),
        ("rbd", rbd.is_some()),
        ("scaleIO", scale_io.is_some()),
        ("storageos", storageos.is_some()),
        ("vsphereVolume", vsphere_volume.is_some()),
    ];
    if let Some((kind, _)) = foreign.into_iter().find(|(_, set)| *set) {
        return Err(refused(&name, kind, "not shared; use a PersistentVolumeClaim"));
    }
    let projected = projected.map(|it| projection(&name, it)).transpose()?;
    let known = [
        config_map.is_some(),
        downward_api.is_some(),
        empty_dir.is_some(),
        ephemeral.is_some(),
        image.is_some(),
        persistent_volume_claim.is_some(),
        projected.is_some(),
        secret.is_some(),
    ];
    if !known.contains(&true) {
        // An empty one would become an emptyDir, which is not what was asked for.
        return Err(refused(&name, "its kind", "not known here"));
    }
    Ok(Volume {
        name,
        config_map,
        downward_api,
        empty_dir,
        ephemeral,
        image,
        persistent_volume_claim,
        projected,
        secret,
        ..Volume::default()
    })
}

fn projection(name: &str, it: ProjectedVolumeSource) -> Result<ProjectedVolumeSource, Refusal> {
    let ProjectedVolumeSource { default_mode, sources } = it;
    let source = |it: VolumeProjection| {
        let VolumeProjection {
            cluster_trust_bundle,
            config_map,
            downward_api,
            pod_certificate,
            secret,
            service_account_token,
        } = it;
        let foreign = [
            ("serviceAccountToken", service_account_token.is_some()),
            ("podCertificate", pod_certificate.is_some()),
            ("clusterTrustBundle", cluster_trust_bundle.is_some()),
        ];
        if let Some((kind, _)) = foreign.into_iter().find(|(_, set)| *set) {
            return Err(refused(name, kind, "of this cluster, and not the consumer's"));
        }
        Ok(VolumeProjection { config_map, downward_api, secret, ..VolumeProjection::default() })
    };
    let sources = sources.map(|it| it.into_iter().map(source).collect::<Result<_, _>>()).transpose()?;
    Ok(ProjectedVolumeSource { default_mode, sources })
}

fn refused(name: &str, kind: &str, why: &str) -> Refusal {
    Refusal::new(FORBIDDEN, format!("spec.volumes[{name}]: {kind} is {why}"))
}
