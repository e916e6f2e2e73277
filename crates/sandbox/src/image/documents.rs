//! The JSON documents of an image.

use std::collections::HashMap;

use oci_spec::OciSpecError;
use oci_spec::image::{
    ANNOTATION_REF_NAME, Config, ConfigBuilder, Descriptor, HistoryBuilder, ImageConfigurationBuilder,
    ImageIndexBuilder, ImageManifestBuilder, MediaType, OciLayoutBuilder, Os, PlatformBuilder, RootFsBuilder,
};
use serde::Serialize;

use super::{Blob, Compression, Image, ImageError, ImageName};

/// Under this name containerd imports the image.
pub(super) const ANNOTATION_CONTAINERD_NAME: &str = "io.containerd.image.name";

/// What the documents are made from.
pub(super) struct Documents<'a> {
    pub(super) image: &'a Image,
    pub(super) name: &'a ImageName,
    pub(super) layers: &'a [Blob],
}

impl Documents<'_> {
    /// How to run the image.
    pub(super) fn config(&self) -> Result<Vec<u8>, ImageError> {
        let created = self.image.created.to_string();
        let history = self.layers.iter().map(|_| HistoryBuilder::default().created(created.clone()).build());
        let diff_ids = self.layers.iter().map(|layer| layer.unpacked.to_string()).collect::<Vec<_>>();
        let build = || -> Result<_, OciSpecError> {
            ImageConfigurationBuilder::default()
                .created(created.clone())
                .architecture(architecture())
                .os(Os::Linux)
                .config(self.process()?)
                .rootfs(RootFsBuilder::default().typ("layers").diff_ids(diff_ids).build()?)
                .history(history.collect::<Result<Vec<_>, _>>()?)
                .build()
        };
        self.json(build())
    }

    fn process(&self) -> Result<Config, OciSpecError> {
        let image = self.image;
        let mut config = ConfigBuilder::default();
        if !image.entrypoint.is_empty() {
            config = config.entrypoint(image.entrypoint.clone());
        }
        if !image.command.is_empty() {
            config = config.cmd(image.command.clone());
        }
        if !image.env.is_empty() {
            config = config
                .env(image.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>());
        }
        if !image.labels.is_empty() {
            config = config.labels(HashMap::from_iter(image.labels.clone()));
        }
        if !image.ports.is_empty() {
            config = config.exposed_ports(image.ports.clone());
        }
        if let Some((user, group)) = image.user {
            config = config.user(format!("{user}:{group}"));
        }
        if let Some(path) = &image.working_dir {
            config = config.working_dir(path.clone());
        }
        config.build()
    }

    /// What the image consists of.
    pub(super) fn manifest(&self, config: &Blob) -> Result<Vec<u8>, ImageError> {
        let kind = match self.image.compression {
            Compression::None => MediaType::ImageLayer,
            Compression::Gzip(_) => MediaType::ImageLayerGzip,
        };
        let layers = self.layers.iter().map(|layer| describe(kind.clone(), layer)).collect::<Vec<_>>();
        let manifest = ImageManifestBuilder::default()
            .schema_version(2_u32)
            .media_type(MediaType::ImageManifest)
            .config(describe(MediaType::ImageConfig, config))
            .layers(layers)
            .build();
        self.json(manifest)
    }

    /// Which images the archive holds: this one, for this architecture, under its name.
    pub(super) fn index(&self, manifest: &Blob) -> Result<Vec<u8>, ImageError> {
        let annotations = HashMap::from([
            (ANNOTATION_CONTAINERD_NAME.to_owned(), self.name.to_string()),
            (ANNOTATION_REF_NAME.to_owned(), self.name.tag().to_owned()),
        ]);
        let build = || -> Result<_, OciSpecError> {
            let platform = PlatformBuilder::default().architecture(architecture()).os(Os::Linux).build()?;
            let mut descriptor = describe(MediaType::ImageManifest, manifest);
            descriptor.set_platform(Some(platform));
            descriptor.set_annotations(Some(annotations));
            ImageIndexBuilder::default()
                .schema_version(2_u32)
                .media_type(MediaType::ImageIndex)
                .manifests(vec![descriptor])
                .build()
        };
        self.json(build())
    }

    /// The same in docker's older form, which `docker load` reads.
    pub(super) fn docker_manifest(&self, config: &Blob) -> Result<Vec<u8>, ImageError> {
        let path = |blob: &Blob| format!("blobs/sha256/{}", blob.digest.digest());
        let manifest = serde_json::json!([{
            "Config": path(config),
            "RepoTags": [self.name.to_string()],
            "Layers": self.layers.iter().map(path).collect::<Vec<_>>(),
        }]);
        self.json(Ok(manifest))
    }

    /// The version of the layout.
    pub(super) fn layout(&self) -> Result<Vec<u8>, ImageError> {
        self.json(OciLayoutBuilder::default().image_layout_version("1.0.0").build())
    }

    /// Sorted by key: labels and annotations are in hash maps, and the bytes decide the digest.
    fn json(&self, document: Result<impl Serialize, OciSpecError>) -> Result<Vec<u8>, ImageError> {
        let invalid = |why: String| ImageError::Invalid { name: self.name.to_string(), why };
        let document = document.map_err(|error| invalid(error.to_string()))?;
        let json = serde_json::to_value(document).and_then(|mut value| {
            value.sort_all_objects();
            serde_json::to_vec(&value)
        });
        json.map_err(|error| invalid(error.to_string()))
    }
}

fn describe(kind: MediaType, blob: &Blob) -> Descriptor {
    Descriptor::new(kind, blob.size, blob.digest.clone())
}

/// The programs that go into images are built for the machine that this one is built for.
fn architecture() -> oci_spec::image::Arch {
    if cfg!(target_arch = "aarch64") { oci_spec::image::Arch::ARM64 } else { oci_spec::image::Arch::Amd64 }
}
