use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::layer::Source;
use super::{Compression, Image, ImageError, ImageName, Layer, Protocol};

/// A directory for one test, gone at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("liqo-image-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An archive as another program would read it.
struct Opened(BTreeMap<String, Vec<u8>>);

impl Opened {
    fn read(path: &std::path::Path) -> Self {
        let mut files = BTreeMap::new();
        let mut archive = tar::Archive::new(fs::File::open(path).unwrap());
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            assert!(files.insert(name.clone(), content).is_none(), "{name} is there twice");
        }
        Self(files)
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.0[name]).unwrap()
    }

    fn blob(&self, descriptor: &Value) -> &[u8] {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let content = &self.0[&format!("blobs/sha256/{digest}")];
        assert_eq!(hex(content), digest);
        assert_eq!(content.len() as u64, descriptor["size"].as_u64().unwrap());
        content
    }

    fn manifest(&self) -> Value {
        serde_json::from_slice(self.blob(&self.json("index.json")["manifests"][0])).unwrap()
    }

    fn config(&self) -> Value {
        serde_json::from_slice(self.blob(&self.manifest()["config"])).unwrap()
    }

    /// Each layer, unpacked if it was compressed.
    fn layers(&self) -> Vec<Vec<u8>> {
        let manifest = self.manifest();
        let unpack = |layer: &Value| {
            let blob = self.blob(layer);
            if layer["mediaType"] == "application/vnd.oci.image.layer.v1.tar" {
                return blob.to_vec();
            }
            assert_eq!(layer["mediaType"], "application/vnd.oci.image.layer.v1.tar+gzip");
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(blob).read_to_end(&mut unpacked).unwrap();
            unpacked
        };
        manifest["layers"].as_array().unwrap().iter().map(unpack).collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One line for each entry of a layer, as `ls` would show it.
fn list(layer: &[u8]) -> Vec<String> {
    let mut archive = tar::Archive::new(layer);
    let describe = |mut entry: tar::Entry<'_, &[u8]>| {
        let header = entry.header().clone();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        let link =
            entry.link_name().unwrap().map(|link| format!(" -> {}", link.display())).unwrap_or_default();
        assert_eq!(header.username().unwrap().unwrap_or_default(), "");
        format!(
            "{:?} {:o} {}:{} @{} {}{link} {content:?}",
            header.entry_type(),
            header.mode().unwrap(),
            header.uid().unwrap(),
            header.gid().unwrap(),
            header.mtime().unwrap(),
            entry.path().unwrap().display(),
        )
    };
    archive.entries().unwrap().map(|entry| describe(entry.unwrap())).collect()
}

fn small(name: &str) -> Image {
    Image::new(name).layer(Layer::new().file("/a", b"content", 0o644))
}

#[test]
fn a_layer_holds_what_was_put_in_sorted_and_with_its_directories() {
    let scratch = Scratch::new("layer");
    let source = scratch.path("source");
    fs::write(&source, "from disk").unwrap();
    let long = format!("opt/{}/{}", "d".repeat(90), "f".repeat(90));
    let layer = Layer::new()
        .symlink("/bin/link", "../usr/bin/tool")
        .file_from("usr/bin/tool", &source, 0o4555)
        .directory("/tmp", 0o1777)
        .owner(65532, 100)
        .file("/data/file", "text".as_bytes(), 0o600)
        .file(&long, Vec::new(), 0o644)
        .symlink("/z", &long);
    let archive = scratch.path("archive.tar");
    let time = "2024-02-29T12:00:00Z".parse().unwrap();
    Image::new("localhost/liqo/test:1").layer(layer).created(time).write(&archive).unwrap();

    let opened = Opened::read(&archive);
    let time = "1709208000";
    assert_eq!(
        list(&opened.layers()[0]),
        [
            format!("Directory 755 0:0 @{time} bin/ \"\""),
            format!("Symlink 777 0:0 @{time} bin/link -> ../usr/bin/tool \"\""),
            format!("Directory 755 0:0 @{time} data/ \"\""),
            format!("Regular 600 65532:100 @{time} data/file \"text\""),
            format!("Directory 755 0:0 @{time} opt/ \"\""),
            format!("Directory 755 0:0 @{time} opt/{}/ \"\"", "d".repeat(90)),
            format!("Regular 644 65532:100 @{time} {long} \"\""),
            format!("Directory 1777 0:0 @{time} tmp/ \"\""),
            format!("Directory 755 0:0 @{time} usr/ \"\""),
            format!("Directory 755 0:0 @{time} usr/bin/ \"\""),
            format!("Regular 4555 0:0 @{time} usr/bin/tool \"from disk\""),
            format!("Symlink 777 65532:100 @{time} z -> {long} \"\""),
        ]
    );
    assert_eq!(opened.config()["created"], "2024-02-29T12:00:00Z");
}

#[test]
fn the_documents_name_each_other_by_digest() {
    let scratch = Scratch::new("documents");
    for compression in [Compression::None, Compression::Gzip(6)] {
        let archive = scratch.path("archive.tar");
        let digest = Image::new("localhost:5000/liqo/test_it:v1.2-x")
            .layer(Layer::new().file("/a", vec![b'x'; 100_000], 0o644))
            .layer(Layer::new().file("/b", "b".as_bytes(), 0o644))
            .compression(compression)
            .entrypoint(["/a", "--flag"])
            .command(["serve"])
            .env("PATH", "/bin")
            .env("A", "b=c")
            .label("org.opencontainers.image.title", "test")
            .expose(8080, Protocol::Tcp)
            .expose(53, Protocol::Udp)
            .user(65532, 65533)
            .working_dir("/work")
            .write(&archive)
            .unwrap();

        let opened = Opened::read(&archive);
        assert_eq!(opened.json("oci-layout")["imageLayoutVersion"], "1.0.0");
        let index = opened.json("index.json");
        let descriptor = &index["manifests"][0];
        assert_eq!(descriptor["digest"].as_str(), Some(digest.as_ref()));
        assert_eq!(
            descriptor["annotations"]["io.containerd.image.name"],
            "localhost:5000/liqo/test_it:v1.2-x"
        );
        assert_eq!(descriptor["annotations"]["org.opencontainers.image.ref.name"], "v1.2-x");
        assert_eq!(descriptor["platform"]["os"], "linux");

        let config = opened.config();
        assert_eq!(
            config["config"],
            serde_json::json!({
                "Entrypoint": ["/a", "--flag"],
                "Cmd": ["serve"],
                "Env": ["A=b=c", "PATH=/bin"],
                "Labels": {"org.opencontainers.image.title": "test"},
                "ExposedPorts": {"8080/tcp": {}, "53/udp": {}},
                "User": "65532:65533",
                "WorkingDir": "/work",
            })
        );
        let layers = opened.layers();
        let diff_ids: Vec<_> = layers.iter().map(|layer| format!("sha256:{}", hex(layer))).collect();
        assert_eq!(config["rootfs"], serde_json::json!({"type": "layers", "diff_ids": diff_ids}));

        let docker = &opened.json("manifest.json")[0];
        assert_eq!(docker["RepoTags"][0], "localhost:5000/liqo/test_it:v1.2-x");
        assert!(opened.0.contains_key(docker["Config"].as_str().unwrap()));
        for layer in docker["Layers"].as_array().unwrap() {
            assert!(opened.0.contains_key(layer.as_str().unwrap()), "{layer}");
        }
    }
}

#[test]
fn compression_makes_the_archive_smaller_and_leaves_the_content_alone() {
    let scratch = Scratch::new("compression");
    let (plain, gzip) = (scratch.path("plain.tar"), scratch.path("gzip.tar"));
    let image = Image::new("localhost/a:1").layer(Layer::new().file("/a", vec![b'x'; 1_000_000], 0o644));
    image.write(&plain).unwrap();
    image.compression(Compression::Gzip(9)).write(&gzip).unwrap();
    assert!(fs::metadata(&gzip).unwrap().len() * 10 < fs::metadata(&plain).unwrap().len());
    assert_eq!(Opened::read(&plain).layers(), Opened::read(&gzip).layers());
}

#[test]
fn equal_input_makes_equal_bytes() {
    let scratch = Scratch::new("reproducible");
    let build = |order: &[usize], name: &str| {
        let source = scratch.path(&format!("{name}-source"));
        fs::write(&source, "same").unwrap();
        let files = [("/x", "1"), ("/y/z", "2"), ("/w", "3")];
        let layer = order.iter().fold(Layer::new().file_from("/s", &source, 0o644), |layer, index| {
            let (path, content) = files[*index];
            layer.file(path, content.as_bytes(), 0o644)
        });
        let image = order.iter().fold(Image::new("localhost/a:1").layer(layer), |image, index| {
            let key = format!("key-{index}");
            image.label(&key, "value").env(&key, "value")
        });
        let archive = scratch.path(&format!("{name}.tar"));
        let digest = image.compression(Compression::Gzip(6)).write(&archive).unwrap();
        (digest, fs::read(archive).unwrap())
    };
    let first = build(&[0, 1, 2], "first");
    for (attempt, order) in [[0, 1, 2], [2, 1, 0], [1, 2, 0]].iter().enumerate() {
        assert!(build(order, &format!("again-{attempt}")) == first, "attempt {attempt} differs");
    }
}

#[test]
fn layers_that_are_equal_are_stored_once() {
    let scratch = Scratch::new("twice");
    let layer = || Layer::new().file("/a", vec![7; 100_000], 0o644);
    let (one, three) = (scratch.path("one.tar"), scratch.path("three.tar"));
    Image::new("localhost/a:1").layer(layer()).write(&one).unwrap();
    Image::new("localhost/a:1").layer(layer()).layer(layer()).layer(layer()).write(&three).unwrap();
    let opened = Opened::read(&three);
    assert_eq!(opened.layers().len(), 3);
    assert_eq!(opened.config()["rootfs"]["diff_ids"].as_array().unwrap().len(), 3);
    let size = |path| fs::metadata(path).unwrap().len();
    assert!(size(&three) < size(&one) + 10_000, "{} and {}", size(&three), size(&one));
}

#[test]
fn names_that_every_tool_reads_alike_are_taken() {
    for name in [
        "localhost/a:1",
        "localhost/liqo/sandbox-app:1",
        "localhost:5000/a/b/c:latest",
        "registry.example.org/a.b_c__d---e/f2:V1.0_x-y",
        "10.0.0.1:5000/a:_",
    ] {
        assert_eq!(ImageName::parse(name).unwrap().to_string(), name);
    }
}

#[test]
fn names_that_tools_would_complete_or_refuse_are_refused() {
    let long = format!("localhost/{}:1", "a".repeat(250));
    let long_tag = format!("localhost/a:{}", "1".repeat(129));
    for name in [
        "",
        "pause",
        "pause:1",
        "liqo/pause:1",
        "localhost/pause",
        "localhost:5000/pause",
        "localhost/:1",
        "localhost/a:",
        "localhost/a/:1",
        "localhost//a:1",
        "localhost/A:1",
        "localhost/a..b:1",
        "localhost/a___b:1",
        "localhost/-a:1",
        "localhost/a-:1",
        "localhost/a b:1",
        "localhost/a:.1",
        "localhost/a:-1",
        "localhost/a:1/2",
        "localhost/ä:1",
        "localhost:x/a:1",
        "-host.example/a:1",
        "host..example/a:1",
        "/a:1",
        "localhost/a:1@sha256:0000",
        &long,
        &long_tag,
    ] {
        let error = small(name).write(&std::env::temp_dir().join("never-written.tar")).expect_err(name);
        assert!(matches!(error, ImageError::Name { .. }), "{name:?}: {error}");
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
    }
}

#[test]
fn paths_that_lead_elsewhere_or_contradict_each_other_are_refused() {
    let file = |path: &str| Layer::new().file(path, b"x", 0o644);
    let cases = [
        (file(""), "empty"),
        (file("/"), "empty"),
        (file("//a"), "empty"),
        (file("/a/"), "empty"),
        (file("/a//b"), "empty"),
        (file("../a"), ".."),
        (file("/a/../b"), ".."),
        (file("./a"), ". or .."),
        (file("/a\0b"), "zero byte"),
        (file("/a/.wh.b"), ".wh."),
        (file("/a").file("a", b"y", 0o644), "twice"),
        (file("/a").directory("/a", 0o755), "twice"),
        (file("/a/b").file("/a", b"y", 0o644), "/a is not a directory"),
        (Layer::new().symlink("/a", "/b").file("/a/b/c", b"y", 0o644), "/a is not a directory"),
        (Layer::new().file("/a", b"y", 0o100_644), "100644"),
        (Layer::new().symlink("/a", ""), "\"\""),
        (Layer::new().symlink("/a", "b\0"), "\"b\\0\""),
    ];
    let scratch = Scratch::new("paths");
    for (layer, expected) in cases {
        let shown = format!("{layer:?}");
        let error = Image::new("localhost/a:1").layer(layer).write(&scratch.path("a.tar")).expect_err(&shown);
        assert!(matches!(error, ImageError::Path { .. }), "{shown}: {error}");
        assert!(error.to_string().contains(expected), "{shown}: {error}");
    }
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let cases = [
        (Image::new("localhost/a:1"), "no layer"),
        (small("localhost/a:1").compression(Compression::Gzip(10)), "level 10"),
        (small("localhost/a:1").env("", "x"), "\"\""),
        (small("localhost/a:1").env("A=B", "x"), "\"A=B\""),
        (small("localhost/a:1").env("A", "x\0"), "zero byte"),
        (small("localhost/a:1").entrypoint(["/a\0"]), "zero byte"),
        (small("localhost/a:1").working_dir("tmp"), "\"tmp\""),
        (small("localhost/a:1").created("1969-12-31T00:00:00Z".parse().unwrap()), "1970"),
    ];
    let scratch = Scratch::new("settings");
    for (image, expected) in cases {
        let error = image.write(&scratch.path("a.tar")).expect_err(expected).to_string();
        assert!(error.contains(expected) && error.contains("localhost/a:1"), "{error}");
    }
}

#[test]
fn a_source_that_cannot_be_read_is_named_and_leaves_nothing_behind() {
    let scratch = Scratch::new("source");
    let (missing, directory, fifo) =
        (scratch.path("missing"), scratch.path("directory"), scratch.path("loop"));
    fs::create_dir(&directory).unwrap();
    symlink(&fifo, &fifo).unwrap();
    for source in [missing, directory, fifo] {
        let layer = Layer::new().file("/a", b"x", 0o644).file_from("/b", &source, 0o644);
        let error = Image::new("localhost/a:1").layer(layer).write(&scratch.path("a.tar")).unwrap_err();
        assert!(matches!(error, ImageError::Source { .. }), "{error}");
        assert!(error.to_string().contains(source.to_str().unwrap()), "{error}");
    }
    let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_source_that_changes_while_it_is_read_spoils_no_archive() {
    let scratch = Scratch::new("changing");
    // Files in /proc say that they are empty, and are not: what a file that grows looks like.
    let layer = Layer::new().file_from("/a", "/proc/self/status", 0o644);
    let error =
        Image::new("localhost/a:1").layer(layer).write(&scratch.path("a.tar")).unwrap_err().to_string();
    assert!(error.contains("/proc/self/status grew while it was read"), "{error}");
    let mut shrinking = Source::new("/a".as_ref(), b"abc".as_slice(), 5);
    let error = std::io::copy(&mut shrinking, &mut std::io::sink()).unwrap_err().to_string();
    assert!(error.contains("/a shrank while it was read"), "{error}");
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn an_archive_is_replaced_whole_or_not_at_all() {
    let scratch = Scratch::new("replace");
    let archive = scratch.path("a.tar");
    fs::File::create(&archive).unwrap().write_all(&[b'x'; 1_000_000]).unwrap();
    let broken = Layer::new().file_from("/a", scratch.path("missing"), 0o644);
    Image::new("localhost/a:1").layer(broken).write(&archive).unwrap_err();
    assert_eq!(fs::metadata(&archive).unwrap().len(), 1_000_000, "a failure leaves the old one");
    small("localhost/a:1").write(&archive).unwrap();
    assert_eq!(Opened::read(&archive).layers().len(), 1);
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);

    for nowhere in [scratch.path("missing/a.tar"), PathBuf::from("/"), PathBuf::from("/proc/a.tar")] {
        let error = small("localhost/a:1").write(&nowhere).unwrap_err();
        assert!(matches!(&error, ImageError::Archive { path, .. } if *path == nowhere), "{error}");
    }
}

#[test]
fn the_sandboxes_own_images_carry_static_programs() {
    let scratch = Scratch::new("own");
    let coredns = scratch.path("coredns");
    fs::write(&coredns, "a binary").unwrap();
    let (pause, app, dns) = (scratch.path("pause.tar"), scratch.path("app.tar"), scratch.path("dns.tar"));
    super::pause(&pause).unwrap();
    super::sandbox_app(&app).unwrap();
    super::coredns(&coredns, &dns).unwrap();
    for (archive, name, user) in [
        (&pause, super::PAUSE_NAME, "65532:65532"),
        (&app, super::SANDBOX_APP_NAME, "65532:65532"),
        (&dns, super::COREDNS_NAME, ""),
    ] {
        let opened = Opened::read(archive);
        let index = opened.json("index.json");
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], name);
        assert_eq!(opened.config()["config"]["User"].as_str().unwrap_or_default(), user, "{name}");
    }
    for program in [super::pause_program(), super::sandbox_app_program()] {
        assert!(program.starts_with(b"\x7fELF"));
        assert!(
            !program.windows(10).any(|bytes| bytes == b"/ld-linux-" || bytes == b"/ld-musl-x"),
            "not static"
        );
    }
}
